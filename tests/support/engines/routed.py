"""Server whose engines are behind a router."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tests.support import plain_http
from tests.support.server.serve_command import Server

Engine = tuple[subprocess.Popen[bytes], str]


@dataclass(frozen=True, slots=True)
class Routed:
    """A server, and the two engines behind the router."""

    server: Server
    engines: tuple[Engine, Engine]

    def figure(self, name: str) -> list[float]:
        """Return a figure of vLLM's metrics for each engine, summed over labels. An engine that has ended has 0."""
        return [0.0 if process.poll() is not None else _figure(url, name) for process, url in self.engines]


def _figure(url: str, name: str) -> float:
    families = text_string_to_metric_families(plain_http.get(f"{url}/metrics", timeout=30).text)
    return sum(sample.value for family in families for sample in family.samples if sample.name == name)
