"""Many WebSockets with several lanes each: whether every event arrives where it belongs, and how evenly they come.

    python -m bench.lanes [--sockets 200] [--lanes 4] [--tokens 300] [--rate 20] [--web 2] [--store]

The engine replays a tape of that many tokens, so many a second. The client keeps the bytes and the times, and judges them afterwards.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import itertools
import json
import os
import statistics
import struct
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openai_harmony import load_harmony_encoding

from bench.support.servers import ROOT, Server, serve
from responses_app.protocol.conformance import StreamValidator

KEY = "sk-bench"
PORT = 8792
LIMIT = 600.0
WORDS = " the quick brown fox jumps over the lazy dog and then it sleeps for a very long time"
ENDS = (b'{"type":"response.completed"', b'{"type":"response.failed"', b'{"type":"response.incomplete"', b'{"type":"error"')


class Client(asyncio.Protocol):
    """One WebSocket that asks for a response on each lane; `heard` are the payloads of the frames, and when they came."""

    def __init__(self, requests: Sequence[bytes], done: asyncio.Future[None]) -> None:
        self.heard: list[tuple[float, bytes]] = []
        self._requests, self._left, self._done = requests, len(requests), done
        self._data, self._open = bytearray(), False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Shake hands."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        nonce = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            (
                f"GET /v1/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nConnection: Upgrade\r\n"
                f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {nonce}\r\n\r\n"
            ).encode()
        )

    def data_received(self, data: bytes) -> None:
        """Cut it into frames; those of a server have no mask (RFC 6455 §5.2)."""
        self._data += data
        if not self._open and not self._opened():
            return
        now, at, known = time.perf_counter(), 0, self._data
        while (cut := _frame(known, at)) is not None:
            opcode, begin, end = cut
            if opcode == 1:
                self._hear(now, bytes(known[begin:end]))
            elif opcode == 9:
                self._transport.write(b"\x8a" + bytes([0x80 | end - begin]) + bytes(4) + bytes(known[begin:end]))
            at = end
        del known[:at]

    def connection_lost(self, error: Exception | None) -> None:
        """Too early, unless all was said."""
        if not self._done.done():
            self._done.set_exception(error or ConnectionError("the server has hung up"))

    def close(self) -> None:
        """Hang up."""
        self._transport.close()

    def _opened(self) -> bool:
        head = self._data.find(b"\r\n\r\n")
        if head < 0:
            return False
        assert self._data.startswith(b"HTTP/1.1 101"), bytes(self._data)
        del self._data[: head + 4]
        self._open = True
        for text in self._requests:
            size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack("!H", len(text))
            self._transport.write(b"\x81" + size + bytes(4) + text)
        return True

    def _hear(self, now: float, text: bytes) -> None:
        self.heard.append((now, text))
        if text.startswith(ENDS):
            self._left -= 1
            if not self._left and not self._done.done():
                self._done.set_result(None)


def _frame(data: bytearray, at: int) -> tuple[int, int, int] | None:
    """The kind of the frame there, and where its payload begins and ends; None if it is not all there."""
    if len(data) < at + 2:
        return None
    size, begin = data[at + 1] & 0x7F, at + 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(data) < begin + width:
            return None
        size, begin = int.from_bytes(data[begin : begin + width], "big"), begin + width
    return None if len(data) < begin + size else (data[at] & 0xF, begin, begin + size)


async def _load(port: int, sockets: int, lanes: int, store: bool) -> list[Client]:
    loop = asyncio.get_running_loop()
    clients, waits = [], []
    for number in range(sockets):
        requests = [
            json.dumps(
                {"type": "response.create", "model": "tape", "input": f"{number}", "stream_id": f"lane-{lane}", "store": store}
            ).encode()
            for lane in range(lanes)
        ]
        done = loop.create_future()
        _, client = await loop.create_connection(lambda r=requests, d=done: Client(r, d), "127.0.0.1", port)  # type: ignore[misc]
        clients.append(client)
        waits.append(done)
        # Not all in one moment: their tokens would come together for ever.
        await asyncio.sleep(4.0 / sockets)
    await asyncio.wait_for(asyncio.gather(*waits), LIMIT)
    for client in clients:
        client.close()
    return clients


def _judge(clients: Sequence[Client], lanes: int, text: str) -> tuple[int, list[float], list[float]]:
    """How many events came, the gaps between deltas of a response, and the seconds to its first one. Raises AssertionError."""
    events, gaps, firsts = 0, list[float](), list[float]()
    for client in clients:
        told: dict[str, list[tuple[float, dict[str, Any]]]] = defaultdict(list)
        for at, data in client.heard:
            event = json.loads(data)
            told[event["stream_id"]].append((at, event))
        assert set(told) == {f"lane-{lane}" for lane in range(lanes)}
        for name, heard in told.items():
            check = StreamValidator(stream_id=name, socket=True)
            broken = [violation for _, event in heard for violation in check.feed(event)] + check.close()
            assert not broken, broken[:3]
            last = heard[-1][1]["response"]
            assert last["status"] == "completed", last["error"]
            assert last["output"][0]["content"][0]["text"] == text
            deltas = [at for at, event in heard if event["type"].endswith(".delta")]
            firsts.append(deltas[0] - heard[0][0])
            gaps += [after - before for before, after in itertools.pairwise(deltas)]
            events += len(heard)
    return events, sorted(gaps), sorted(firsts)


def main() -> None:
    """Measure, and print a row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("sockets", 200), ("lanes", 4), ("tokens", 300), ("rate", 20), ("web", 2), ("port", PORT)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--store", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verbatim-lanes-") as folder:
        tape, text = _tape(Path(folder), given.tokens, given.rate)
        command = [
            str(ROOT / "bin/serve"),
            "--port",
            str(given.port),
            "--engine",
            f"script://{tape}?loop=1",
            "--web",
            str(given.web),
        ]
        env = {
            "RESPONSES_DATA_DIR": f"{folder}/data",
            "RESPONSES_API_KEY": KEY,
            "RESPONSES_LOG_LEVEL": "WARNING",
            "RESPONSES_MAX_CONCURRENT": "2000",
        }
        with serve(command, given.port, env, Path(folder) / "log") as server:
            _row(server, given, text)


def _row(server: Server, given: argparse.Namespace, text: str) -> None:
    before, own, began = server.parts(), time.process_time(), time.perf_counter()
    clients = asyncio.run(_load(given.port, given.sockets, given.lanes, given.store))
    seconds, own, after = time.perf_counter() - began, time.process_time() - own, server.parts()
    used = {part: after[part] - before.get(part, 0.0) for part in sorted(after)} | {"client": own}
    events, gaps, firsts = _judge(clients, given.lanes, text)
    quantiles = [1000 * gaps[int(share * (len(gaps) - 1))] for share in (0.5, 0.9, 0.99, 0.999, 1)]
    print(f"{given.sockets} sockets, {given.lanes} lanes each, {given.tokens} tokens at {given.rate}/s, store={given.store}")
    print(f"{events} events in {seconds:.1f} s, {events / seconds:.0f}/s; none lost, none misrouted")
    shares = ", ".join(f"{part} {1e6 * spent / events:.0f}" for part, spent in used.items())
    print(f"µs of CPU for an event: {1e6 * sum(used.values()) / events:.0f} ({shares})")
    print("gaps between deltas in ms: median {:.0f}, p90 {:.0f}, p99 {:.0f}, p99.9 {:.0f}, most {:.0f}".format(*quantiles))
    print(f"first delta after {1000 * statistics.median(firsts):.0f} ms in the median, {1000 * firsts[-1]:.0f} ms at most")


def _tape(folder: Path, tokens: int, rate: float) -> tuple[Path, str]:
    """One line that says so many tokens, and its text."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    words = encoding.encode(WORDS)
    said = (words * (tokens // len(words) + 1))[:tokens]
    ids = [*encoding.encode("<|channel|>final<|message|>", allowed_special="all"), *said]
    chunks: list[dict[str, Any]] = []
    for token in ids:
        chunks += [{"tokens": [token]}, {"delay": 1 / rate}]
    chunks.append({"tokens": encoding.encode("<|return|>", allowed_special="all")})
    tape = folder / "tape.jsonl"
    tape.write_text(json.dumps({"chunks": chunks}) + "\n")
    return tape, encoding.decode(said)


if __name__ == "__main__":
    main()
