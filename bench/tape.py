"""Events per second of streams from a recording, stored and not stored, with the CPU time of each process.

    python -m bench.tape [--streams 1 16 64 256] [--tokens 400] [--web 1] [--rounds 3] [--rate TOKENS_PER_S]

The engine replays a recording, so the figures are those of the server alone. Without `--rate` the recording has no delays. With
`--rate` all streams begin at once, and the gaps between the reads of a stream and the times to the first event are printed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai_harmony import load_harmony_encoding

from bench.servers import ROOT, Server, serve

KEY = "sk-bench"
PORT = 8793
LIMIT_S = 600.0
WORDS = " the quick brown fox jumps over the lazy dog and then it sleeps for a very long time"
EVENT, DELTA, DONE = b"\nevent: ", b".delta\ndata: ", b"data: [DONE]\n\n"


@dataclass(slots=True)
class StreamResult:
    """Events and deltas of a stream, and the times of its reads: seconds since the start of the round."""

    events: int = 0
    deltas: int = 0
    times: list[float] = field(default_factory=list)


class StreamClient(asyncio.Protocol):
    """HTTP client of one streaming request that counts events without parsing them."""

    def __init__(self, request: bytes, done: asyncio.Future[StreamResult], began: float) -> None:
        self._request, self._done, self._began = request, done, began
        self._result, self._tail = StreamResult(), b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count the events of a read."""
        result, overlap = self._result, self._tail
        text = overlap + data
        result.events += text.count(EVENT) - overlap.count(EVENT)
        deltas = text.count(DELTA) - overlap.count(DELTA)
        result.deltas += deltas
        if deltas:
            result.times.append(time.perf_counter() - self._began)
        self._tail = text[-16:]
        if DONE in text:
            self._transport.close()
            if not self._done.done():
                self._done.set_result(result)

    def connection_lost(self, error: Exception | None) -> None:
        """Fail unless the stream has ended."""
        if not self._done.done():
            self._done.set_exception(error or ConnectionError(f"the server closed the connection: {self._tail!r}"))


@dataclass(frozen=True, slots=True)
class Round:
    """Results of the streams of a round, its length in seconds, and the CPU seconds of each part of the server and the client."""

    streams: list[StreamResult]
    seconds: float
    cpu: dict[str, float]

    @property
    def events(self) -> int:
        """Events of all streams."""
        return sum(stream.events for stream in self.streams)


async def _load(port: int, streams: int, requests: int, *, store: bool) -> list[StreamResult]:
    loop = asyncio.get_running_loop()
    began, numbers = time.perf_counter(), iter(range(requests))

    async def worker() -> list[StreamResult]:
        results = []
        for number in numbers:
            done = loop.create_future()
            request = _request(port, number, store=store)
            await loop.create_connection(lambda r=request, d=done: StreamClient(r, d, began), "127.0.0.1", port)  # type: ignore[misc]
            results.append(await asyncio.wait_for(done, LIMIT_S))
        return results

    return [one for some in await asyncio.gather(*(worker() for _ in range(streams))) for one in some]


def _request(port: int, number: int, *, store: bool) -> bytes:
    body = json.dumps({"model": "tape", "input": f"{number}", "stream": True, "store": store}).encode()
    head = (
        f"POST /v1/responses HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def measure(server: Server, port: int, streams: int, requests: int, *, store: bool) -> Round:
    """Measure one round of `requests` requests, `streams` of them at a time."""
    before, own, began = server.parts(), time.process_time(), time.perf_counter()
    results = asyncio.run(_load(port, streams, requests, store=store))
    seconds, own, after = time.perf_counter() - began, time.process_time() - own, server.parts()
    return Round(results, seconds, {part: after[part] - before.get(part, 0.0) for part in sorted(after)} | {"client": own})


def write_tape(folder: Path, tokens: int, rate: float | None) -> Path:
    """Write a recording with one answer of `tokens` tokens, `rate` tokens per second; without `rate`, without delays."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    words = encoding.encode(WORDS)
    ids = [
        *encoding.encode("<|channel|>final<|message|>", allowed_special="all"),
        *(words * (tokens // len(words) + 1))[:tokens],
    ]
    chunks: list[dict[str, Any]] = []
    for token in ids:
        chunks += [{"tokens": [token]}] if rate is None else [{"tokens": [token]}, {"delay": 1 / rate}]
    chunks.append({"tokens": encoding.encode("<|return|>", allowed_special="all")})
    tape = folder / "tape.jsonl"
    tape.write_text(json.dumps({"chunks": chunks}) + "\n")
    return tape


def _print_rounds(streams: int, store: bool, rounds: list[Round]) -> None:
    rate = statistics.median(one.events / one.seconds for one in rounds)
    parts = sorted({part for one in rounds for part in one.cpu})
    costs = {part: statistics.median(1e6 * one.cpu.get(part, 0.0) / one.events for one in rounds) for part in parts}
    server = sum(cost for part, cost in costs.items() if part != "client")
    shares = ", ".join(f"{part} {cost:.0f}" for part, cost in costs.items())
    tokens = statistics.median(sum(stream.deltas for stream in one.streams) / one.seconds for one in rounds)
    print(
        f"{streams:>5} streams store={store!s:<5} {rate:>8.0f} events/s {tokens:>8.0f} deltas/s "
        f"CPU µs an event: server {server:.0f} ({shares})",
        flush=True,
    )


def _print_times(one: Round) -> None:
    gaps = sorted(1000 * (b - a) for stream in one.streams for a, b in itertools.pairwise(stream.times))
    firsts = sorted(1000 * stream.times[0] for stream in one.streams)
    picked = {share: gaps[int(share * (len(gaps) - 1))] for share in (0.5, 0.99, 0.999, 1)}
    print(
        "      gaps in ms: median {:.0f}, p99 {:.0f}, p99.9 {:.0f}, most {:.0f}; ".format(*picked.values())
        + f"first event: median {statistics.median(firsts):.0f}, most {firsts[-1]:.0f}",
        flush=True,
    )


def main() -> None:
    """Measure each number of streams, stored and not stored in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 16, 64, 256])
    for name, default in (("tokens", 400), ("web", 1), ("rounds", 3), ("port", PORT), ("requests", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--rate", type=float, help="tokens per second of each stream")
    parser.add_argument("--only", choices=("stored", "unstored"))
    given = parser.parse_args()
    kinds = [store for store, name in ((True, "stored"), (False, "unstored")) if given.only in (None, name)]
    with tempfile.TemporaryDirectory(prefix="verbatim-tape-") as folder:
        tape = write_tape(Path(folder), given.tokens, given.rate)
        command = [str(ROOT / "bin/serve"), "--port", str(given.port), "--engine", f"script://{tape}?loop=1"]
        command += ["--web", str(given.web)] if given.web > 1 else []
        env = {
            "RESPONSES_DATA_DIR": f"{folder}/data",
            "RESPONSES_API_KEY": KEY,
            "RESPONSES_LOG_LEVEL": "WARNING",
            "RESPONSES_MAX_CONCURRENT": "4000",
        }
        with serve(command, given.port, env, Path(folder) / "log") as server:
            for streams in given.streams:
                requests = given.requests or max(streams if given.rate else 2 * streams, 10 if given.rate is None else 1)
                measure(server, given.port, streams, streams, store=False)
                rounds: dict[bool, list[Round]] = {store: [] for store in kinds}
                for _ in range(given.rounds):
                    for store in kinds:
                        rounds[store].append(measure(server, given.port, streams, requests, store=store))
                for store in kinds:
                    _print_rounds(streams, store, rounds[store])
                    if given.rate is not None:
                        _print_times(sorted(rounds[store], key=lambda one: one.seconds)[given.rounds // 2])


if __name__ == "__main__":
    main()
