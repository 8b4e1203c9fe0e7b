"""Listeners of a real server that do not listen: their streams wait, and the others do not notice."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.support.server.processes import named
from tests.support.server.serve_command import Server

DEAF = 30
TOKENS = 3000  # With an event of 200 bytes for each, ten times what the buffers of a connection hold.
ALLOWED = 60 * 1024  # KiB for all of them; what they do not read is ten times as much.


@pytest.fixture(scope="module")
def talker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that says a great deal, as fast as it can."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    begin = encoding.encode("<|channel|>final<|message|>", allowed_special="all")
    word, end = encoding.encode(" word"), encoding.encode("<|return|>", allowed_special="all")
    folder = tmp_path_factory.mktemp("talker")
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
    """A client that asks and does not read; its own buffer is as small as the kernel makes it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.sendall(request(server, **more))
    return client


def memory(server: Server) -> int:
    pid = named(server.process.pid, "server.processes.main")
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def heard(server: Server) -> float:
    """How long a whole stream takes one that reads."""
    headers = {"Authorization": f"Bearer {server.key}"}
    body = {"model": "tape", "input": "Hi", "stream": True, "store": False}
    began = time.monotonic()
    with httpx2.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=60) as answer:
        deltas = sum(line == "event: response.output_text.delta" for line in answer.iter_lines())
    assert deltas == TOKENS
    return time.monotonic() - began


def test_deaf_listeners_slow_nobody(talker: Server) -> None:
    alone = min(heard(talker) for _ in range(2))
    with ExitStack() as stack:
        for _ in range(DEAF):
            stack.enter_context(call(talker))
        time.sleep(2)  # For what is generated in vain.
        assert min(heard(talker) for _ in range(2)) < 3 * alone + 2


def test_deaf_listeners_cost_little(talker: Server) -> None:
    for _ in range(3):
        heard(talker)
    before = memory(talker)
    with ExitStack() as stack:
        for _ in range(DEAF):
            stack.enter_context(call(talker))
        time.sleep(4)
        heard(talker)
        assert memory(talker) - before < ALLOWED


@pytest.mark.parametrize("read", [0, 1, 5000])
def test_those_who_go_away_at_any_moment_leave_the_server_well(talker: Server, read: int) -> None:
    for _ in range(10):
        client = call(talker)
        client.settimeout(20)
        if read:
            assert client.recv(read)
        client.close()
    began = time.monotonic()
    while (answer := httpx2.get(f"{talker.url}/health")).status_code != 200:
        assert time.monotonic() - began < 10, answer.text
    heard(talker)
    assert "Traceback" not in talker.said
