"""Health of a server with two web processes: a Postgres that hangs, and the time between SIGTERM and the end of listening."""

from __future__ import annotations

import http.client
import json
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support import plain_http
from tests.support.server.processes import all_named, send_to_all
from tests.support.server.serve_command import END_LIMIT, Server
from tests.support.waiting import wait_until

# The whole answer comes within 5 s; the machine may be busy.
ANSWER_LIMIT_S = 5.0


@pytest.fixture(params=["1", "2"], ids=["one process", "two web processes"])
def server(request: pytest.FixtureRequest, tmp_path: Path, tape: str) -> Iterator[Server]:
    workers = () if request.param == "1" else ("--web", request.param)
    server = Server(tmp_path / "data", "--engine", tape, *workers, RESPONSES_DRAIN_DELAY="600")
    yield server.ready()
    server.end()


def ready(server: Server) -> tuple[int, dict[str, Any]]:
    answer = plain_http.get(f"{server.url}/health/ready", timeout=ANSWER_LIMIT_S)
    return answer.status_code, answer.json()


def ask_while_draining(server: Server) -> None:
    """Ask until the port closes; every answer is that of a server that drains."""

    def is_draining() -> bool:
        assert ready(server)[1]["failed"] == ["draining"]
        return False

    wait_until(is_draining, limit_s=END_LIMIT)


def send_half(server: Server) -> tuple[http.client.HTTPConnection, bytes]:
    """Send the head and half the body of a request; return the connection and the other half."""
    body = json.dumps({"model": "tape", "input": "Hi", "store": False}).encode()
    half = len(body) // 2
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=END_LIMIT)
    connection.putrequest("POST", "/v1/responses")
    for name, value in (
        ("Authorization", f"Bearer {server.key}"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
    ):
        connection.putheader(name, value)
    connection.endheaders(body[:half])
    return connection, body[half:]


def test_database_that_hangs_is_named_in_time_and_term_closes_the_port_last(server: Server) -> None:
    wait_until(lambda: ready(server)[0] == 200, explain=lambda: ready(server))
    stopped = all_named(server.process.pid, "postgres")
    send_to_all(stopped, signal.SIGSTOP)
    try:
        wait_until(lambda: ready(server)[1]["failed"] == ["database", "migrations"])
        assert "does not answer within 1 s" in ready(server)[1]["checks"]["database"]["message"]
        assert plain_http.get(f"{server.url}/health/live", timeout=ANSWER_LIMIT_S).status_code == 200
    finally:
        send_to_all(stopped, signal.SIGCONT)
    wait_until(lambda: [ready(server)[0] for _ in range(4)] == [200] * 4)

    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: all(ready(server)[1]["failed"] == ["draining"] for _ in range(4)))
    assert server.ask(store=False).status_code == 200, "requests are served until the port closes"
    connection, second_half = send_half(server)
    with closing(connection):
        # Another signal ends the delay.
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises((httpx2.NetworkError, httpx2.RemoteProtocolError)):
            ask_while_draining(server)
        connection.send(second_half)
        with connection.getresponse() as answer:
            answer.read()
        assert answer.status == 200, "a request that has begun is answered"
    assert server.process.wait(END_LIMIT) == 0
