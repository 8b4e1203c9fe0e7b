"""A server with both demo models, started as a user would start it: real engines, real Postgres, a real port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from responses_app.installation.data_dir import ROOT as ROOT
from tests.support.server.serve_command import Server

KEY = "sk-contract-tests"
START_LIMIT = 480.0
STOP_LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Address:
    """Address and API key of the server."""

    server: Server
    key: str = KEY

    @property
    def port(self) -> int:
        """The port of the API and the pages."""
        return self.server.port

    @property
    def base(self) -> str:
        """The base URL for clients."""
        return f"{self.server.url}/v1"

    def key_of(self, project: str) -> str:
        """A new key of another project."""
        return self.server.manage("createkey", project)


@contextmanager
def demo_server(folder: Path) -> Iterator[Address]:
    """Run a server with both demo models and the demo tools, whose data and log are in `folder`."""
    arguments = ("--model", "demo-chat", "--model", "demo-harmony", "--demo-tools")
    server = Server(folder / "data", *arguments, RESPONSES_API_KEY=KEY)
    try:
        yield Address(server.ready(START_LIMIT))
    finally:
        server.end(STOP_LIMIT)
