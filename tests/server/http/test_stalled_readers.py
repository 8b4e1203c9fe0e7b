"""Clients of a real server that do not read: their streams wait, and other clients are served as usual."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support import plain_http
from tests.support.server.processes import named, wait_until_idle
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

STALLED = 30
TOKENS = 3000  # With an event of 200 bytes for each, ten times what the buffers of a connection hold.
ALLOWED = 60 * 1024  # KiB for all of them; what they do not read is ten times as much.


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start a server whose engine generates TOKENS tokens as fast as possible."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    begin = encoding.encode("<|channel|>final<|message|>", allowed_special="all")
    word, end = encoding.encode(" word"), encoding.encode("<|return|>", allowed_special="all")
    folder = tmp_path_factory.mktemp("server")
    tape = folder / "tape.jsonl"
    chunks = [{"tokens": begin}, *[{"tokens": word}] * TOKENS, {"tokens": end}]
    tape.write_text(json.dumps({"chunks": chunks}) + "\n")
    server = Server(folder / "data", "--engine", f"script://{tape}?loop=1&max_model_len={4 * TOKENS}")
    yield server.ready()
    server.end()


def request(server: Server, **more: object) -> bytes:
    body = json.dumps({"model": "tape", "input": "Hi", "stream": True, "store": False, **more}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def call(server: Server, **more: object) -> socket.socket:
    """Send a request and do not read the answer; the receive buffer is as small as the kernel allows."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.sendall(request(server, **more))
    return client


def memory(server: Server) -> int:
    pid = named(server.process.pid, "server.processes.main")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def read_stream(server: Server) -> float:
    """Read a whole stream and return the seconds that it took."""
    headers = {"Authorization": f"Bearer {server.key}"}
    body = {"model": "tape", "input": "Hi", "stream": True, "store": False}
    began = time.monotonic()
    with plain_http.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=60) as answer:
        deltas = sum(line == "event: response.output_text.delta" for line in answer.iter_lines())
    assert deltas == TOKENS
    return time.monotonic() - began


def stall_clients(server: Server, stack: ExitStack) -> None:
    """Start STALLED streams that are not read, and wait until the server has generated all that it does without readers."""
    clients = [stack.enter_context(call(server)) for _ in range(STALLED)]
    for client in clients:
        client.settimeout(60)
        assert client.recv(1, socket.MSG_PEEK)
    wait_until_idle(named(server.process.pid, "server.processes.main"))


def test_stalled_clients_do_not_slow_others(server: Server) -> None:
    alone = min(read_stream(server) for _ in range(2))
    with ExitStack() as stack:
        stall_clients(server, stack)
        assert min(read_stream(server) for _ in range(2)) < 3 * alone + 2


def test_stalled_clients_use_little_memory(server: Server) -> None:
    for _ in range(3):
        read_stream(server)
    before = memory(server)
    with ExitStack() as stack:
        stall_clients(server, stack)
        read_stream(server)
        assert memory(server) - before < ALLOWED


@pytest.mark.parametrize("read", [0, 1, 5000])
def test_clients_that_disconnect_at_any_moment_leave_the_server_healthy(server: Server, read: int) -> None:
    for _ in range(10):
        client = call(server)
        client.settimeout(20)
        if read:
            assert client.recv(read)
        client.close()
    wait_until(lambda: plain_http.get(f"{server.url}/health").status_code == 200)
    read_stream(server)
    assert "Traceback" not in server.output
