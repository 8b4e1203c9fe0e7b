"""Specification of an engine worker, with the URL for web processes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from responses_app.engines.adapters import PREFIX
from responses_app.runs.models import DIALECT_KEYS
from responses_app.server.bootstrap.ports import address
from responses_app.server.cli.model_specs import InvalidModelSpec

# Name of the socket in the folder of a worker.
SOCKET = "engine.sock"


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """Engine worker: `model` is a folder or hub name, `options` are vLLM's, `dialect` is for the prompt renderer.

    With `socket` the worker serves the web processes of this machine at that Unix socket, otherwise at `host` and `port` over HTTP.
    """

    name: str
    model: str
    options: Mapping[str, str]
    dialect: Mapping[str, str]
    host: str
    port: int
    key: str | None = None
    socket: Path | None = None

    @property
    def url(self) -> str:
        """Return the engine URL for `--engine` and RESPONSES_MODELS."""
        if self.socket is not None:
            adapters = {key: folder for key, folder in self.options.items() if key.startswith(PREFIX)}
            return f"unix://{quote(str(self.socket))}?{urlencode({'tokenizer': self.model, **self.dialect, **adapters})}"
        query = {"model": self.name, "priority": "1", "tokenizer": self.model, **self.dialect}
        key = f":{quote(self.key, safe='')}@" if self.key else ""
        return f"http://{key}{address(self.host, self.port)}?{urlencode(query)}"

    def folder(self, data_dir: Path) -> Path:
        """Return the folder of the worker's lock, log and sockets."""
        return data_dir / "engines" / re.sub(r"[^\w.-]", "-", self.name)


def plan_socket(entry: str, data_dir: Path) -> WorkerSpec:
    """Parse an entry as `plan` does, for a worker with a Unix socket in the folder of the data folder."""
    made = plan(entry, "", 0)
    return replace(made, socket=made.folder(data_dir) / SOCKET)


def plan(entry: str, host: str, port: int, key: str | None = None) -> WorkerSpec:
    """Parse an entry `name=vllm:///...` of a RESPONSES_MODELS setting. Raises InvalidModelSpec for another engine."""
    name, _, url = entry.partition("=")
    parts = urlsplit(url)
    if parts.scheme != "vllm":
        raise InvalidModelSpec(f"{name}: a worker runs vLLM itself, and {parts.scheme}:// is an engine elsewhere")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    dialect = {key: query.pop(key) for key in list(query) if key in DIALECT_KEYS}
    path = unquote(parts.netloc + parts.path)
    return WorkerSpec(name, path if Path(path).exists() else path.strip("/"), query, dialect, host, port, key)
