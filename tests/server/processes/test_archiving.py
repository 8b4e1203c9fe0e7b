"""A whole server seals what has ended, and `manage.py prune` works beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.support.server.serve_command import Server

LIMIT = 60.0


@pytest.fixture
def server(tmp_path: Path, tape: str) -> Iterator[Server]:
    server = Server(tmp_path / "data", "--engine", tape, RESPONSES_SEAL_AFTER="0")
    yield server
    server.end()


def pruned(server: Server, *arguments: str) -> str:
    """What `manage.py prune` says, beside the embedded Postgres of the server."""
    return server.manage("prune", *arguments)


def test_what_has_ended_is_sealed_and_then_pruned_while_it_serves(server: Server) -> None:
    uid = server.ready().ask().json()["id"]
    address, headers = f"{server.url}/v1/responses/{uid}", {"Authorization": f"Bearer {server.key}"}
    before = httpx2.get(address, headers=headers).content
    stream = httpx2.get(f"{address}?stream=true", headers=headers).content
    deadline = time.monotonic() + LIMIT
    while "deltas: 1 would be deleted" not in pruned(server, "--deltas=0s", "--dry-run"):
        assert time.monotonic() < deadline, server.said
    assert httpx2.get(address, headers=headers).content == before
    assert httpx2.get(f"{address}?stream=true", headers=headers).content == stream
    assert "deltas: 1 deleted" in pruned(server, "--deltas=0s")
    assert httpx2.get(address, headers=headers).content == before
    assert httpx2.get(f"{address}?stream=true", headers=headers).status_code == 400
    assert "responses: 1 deleted" in pruned(server, "--responses=0s")
    assert httpx2.get(address, headers=headers).status_code == 404
