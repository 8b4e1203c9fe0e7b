"""What clients that do not listen cost: memory of the server for each, and how much later the tokens of those who do come."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import socket
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from bench.support.servers import Server, python, serve
from bench.support.stream_client import Target
from responses_app.dialects.harmony.dialect import HarmonyDialect

KEY = "sk-bench"
PORT = 8769
PAUSE = 0.03
# What those who do not read have asked for: so many events of 400 bytes, twice what the buffers of a connection hold.
MANY, TOKENS = 1500, 20
# Seconds, within those after which they would be cut off; and the share of a processor that an idle server takes.
QUIET_LIMIT, IDLE = 40, 10.0
ENCODING = HarmonyDialect().encoding


def tape(path: Path) -> Path:
    """One line at the pace of a model, and one as fast as it goes."""
    begin, word, end = (
        ENCODING.encode(text, allowed_special="all") for text in ("<|channel|>final<|message|>", " word", "<|return|>")
    )
    slow = [step for _ in range(100) for step in ({"tokens": word}, {"delay": PAUSE})]
    lines = {" slow": slow, " fast": [{"tokens": word * TOKENS}] * MANY}
    told = [
        json.dumps({"match": ENCODING.encode(words), "chunks": [{"tokens": begin}, *chunks, {"tokens": end}]})
        for words, chunks in lines.items()
    ]
    path.write_text("\n".join(told) + "\n")
    return path


def request(target: Target, words: str, *, store: bool = True) -> bytes:
    """A stream is asked for."""
    body = json.dumps({"model": target.model, "input": f"Be{words}", "stream": True, "store": store}).encode()
    head = f"POST /v1/responses HTTP/1.1\r\nHost: {target.host}\r\nAuthorization: Bearer {target.key}\r\n"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body


async def listen(target: Target) -> list[float]:
    """One that reads: seconds between its deltas."""
    reader, writer = await asyncio.open_connection(target.host, target.port, limit=2**20)
    writer.write(request(target, " slow"))
    times = [time.perf_counter() async for line in reader if line.startswith(b"event: response.output_text.delta")]
    writer.close()
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def deaf(target: Target) -> socket.socket:
    """One that asks and does not read; its own buffer is as small as the kernel makes it."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect((target.host, target.port))
    client.sendall(request(target, " fast", store=False))
    client.setblocking(False)
    return client


async def crumbs(clients: Sequence[socket.socket]) -> None:
    """Each takes a byte a second."""
    while True:
        await asyncio.sleep(1)
        for client in clients:
            with suppress(OSError):
                client.recv(1)


async def quiet(one: psutil.Process) -> None:
    """Wait until everything for those who do not read is generated: it is they who are measured, and not the load that they are."""
    one.cpu_percent()
    for _ in range(QUIET_LIMIT):
        await asyncio.sleep(1)
        if one.cpu_percent() < IDLE:
            return


async def round_(target: Target, streams: int) -> tuple[float, float]:
    """Milliseconds between tokens for those who read: the median, and what 99 of 100 stay below."""
    gaps = sorted(gap for gaps in await asyncio.gather(*(listen(target) for _ in range(streams))) for gap in gaps)
    return statistics.median(gaps) * 1e3, gaps[int(len(gaps) * 0.99)] * 1e3


async def measure(target: Target, server: Server, options: argparse.Namespace) -> None:
    """Without them, and with more and more of them."""
    one = psutil.Process(server.process.pid)
    await round_(target, options.streams)
    print(f"{'who does not read':<26} {'median':>9} {'99 of 100':>10} {'memory':>9}")
    empty = one.memory_info().rss
    for slowly in (False, True):
        for count in options.deaf:
            clients = [deaf(target) for _ in range(count)]
            eating = asyncio.create_task(crumbs(clients if slowly else []))
            await quiet(one)
            middle, late = await round_(target, options.streams)
            held = one.memory_info().rss - empty
            name = f"{count} that read " + ("a byte a second" if slowly else "nothing")
            print(f"{name:<26} {middle:>6.1f} ms {late:>7.1f} ms {held / 1e6:>6.1f} MB", flush=True)
            eating.cancel()
            for client in clients:
                client.close()
            await asyncio.sleep(3)
    print(f"{'all gone':<26} {'':>9} {'':>10} {(one.memory_info().rss - empty) / 1e6:>6.1f} MB")


def main() -> None:
    """`python -m bench.listeners`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=8, help="clients that read")
    parser.add_argument("--deaf", type=int, nargs="+", default=[0, 25, 100], help="clients that do not")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="listeners-") as name:
        folder = Path(name)
        line = f"script://{tape(folder / 'tape.jsonl')}?loop=1&max_model_len=200000"
        command = [python(), "-m", "responses_app.server.processes.main", "--engine", line, "--port", str(PORT)]
        env = {"RESPONSES_DATA_DIR": str(folder / "data"), "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        with serve(command, PORT, env, folder / "serve.log") as server:
            asyncio.run(measure(Target("127.0.0.1", PORT, "tape", KEY), server, options))


if __name__ == "__main__":
    main()
