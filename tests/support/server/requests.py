"""Requests to a running server, as a client of the API sends them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

LIMIT_S = 180
# The key that all servers of a database share.
KEY = "sk-of-all-hosts"
FINAL = frozenset({"completed", "failed", "incomplete", "cancelled"})


def call(server: Server, method: str, path: str, **how: Any) -> httpx2.Response:
    """Send a request to `/v1/` and `path` with the key of the server."""
    headers = {"Authorization": f"Bearer {server.key}"}
    return plain_http.request(method, f"{server.url}/v1/{path}", headers=headers, timeout=LIMIT_S, **how)


def create(server: Server, **fields: Any) -> dict[str, Any]:
    """Create and return a response."""
    answer = server.ask(**fields)
    assert answer.status_code == 200, answer.text
    created: dict[str, Any] = answer.json()
    return created


def retrieve(server: Server, uid: str) -> dict[str, Any]:
    """Return a response as GET does."""
    response: dict[str, Any] = call(server, "GET", f"responses/{uid}").json()
    return response


def wait_ended(server: Server, uid: str, limit_s: float = LIMIT_S) -> dict[str, Any]:
    """Wait until a response has ended, and return it. A lost database may refuse some requests meanwhile."""
    last_response: dict[str, Any] = {}

    def is_ended() -> bool:
        last_response.clear()
        last_response.update(retrieve(server, uid))
        return last_response.get("status") in FINAL

    wait_until(is_ended, limit_s=limit_s, poll_s=0.1, explain=lambda: server.output)
    return last_response


@contextmanager
def replayed(server: Server, uid: str, after: int = -1) -> Iterator[Iterator[dict[str, Any]]]:
    """Open the stream of the events of a response, with numbers above `after`, and yield them on arrival."""
    params = {"stream": "true", "starting_after": str(after)} if after >= 0 else {"stream": "true"}
    headers = {"Authorization": f"Bearer {server.key}"}
    url = f"{server.url}/v1/responses/{uid}"
    with plain_http.stream("GET", url, params=params, headers=headers, timeout=LIMIT_S) as answer:
        assert answer.status_code == 200, answer.read()
        yield (json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: {"))


def replay(server: Server, uid: str, after: int = -1) -> list[dict[str, Any]]:
    """Return the events of a response up to the last event."""
    with replayed(server, uid, after) as events:
        return list(events)
