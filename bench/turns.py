"""Cost of a turn of an agent before the first event: a chain of tool calls over a WebSocket, and over HTTP with previous_response_id.

    python -m bench.turns [--turns 30] [--chains 5] [--model NAME=SOURCE]

The engine replays a tape, so that all there is to see is the server: finding what came before, rendering it, keeping it.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from openai_harmony import load_harmony_encoding
from websockets.sync.client import connect

from bench.support.markdown import markdown_table
from bench.support.quantiles import quantile
from bench.support.servers import ROOT, serve

CALL = (
    "<|channel|>analysis<|message|>I have to read the next file before I can say anything about it.<|end|>"
    '<|start|>assistant<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{"path":"src/next.py"}<|call|>'
)
TOOL = {
    "type": "function",
    "name": "read_file",
    "description": "Reads a file.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
}
FILE = "def f(x: int) -> int:\n    return x + 1\n\n\n" * 60
KEY = "sk-bench"
PORT = 8791

Ask: TypeAlias = Callable[[Mapping[str, Any]], Iterator[dict[str, Any]]]


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=30)
    parser.add_argument("--chains", type=int, default=5)
    parser.add_argument("--port", type=int, default=PORT)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="verbatim-turns-") as folder:
        command = ["bin/serve", "--port", str(options.port), "--engine", f"script://{write_tape(Path(folder), CALL)}?loop=1"]
        env = {"RESPONSES_DATA_DIR": f"{folder}/data", "RESPONSES_API_KEY": KEY, "RESPONSES_LOG_LEVEL": "WARNING"}
        with serve([str(ROOT / command[0]), *command[1:]], options.port, env, Path(folder) / "log"):
            _table(options.port, options.turns, options.chains)


def _table(port: int, turns: int, chains: int) -> None:
    ways = {
        "HTTP, previous_response_id": (_http, True),
        "WebSocket, stored": (_socket, True),
        "WebSocket, store: false": (_socket, False),
    }
    seconds: dict[str, list[list[float]]] = {name: [] for name in ways}
    # By turns, so that what else the machine does is felt by all.
    for number in range(chains + 1):
        for name, (open_way, store) in ways.items():
            with open_way(port) as ask:
                times = _chain(ask, turns, store)
            if number:  # The first chain warms up.
                seconds[name].append(times)
    head = [f"milliseconds to the first item, medians of {chains} chains", "turn 1", f"turn {turns // 2}", f"turn {turns}"]
    rows = [_row(name, chained, turns) for name, chained in seconds.items()]
    print("\n".join(markdown_table([*head, "all turns", "p95"], rows)))


def _row(name: str, chains: Sequence[Sequence[float]], turns: int) -> list[str]:
    cells = [statistics.median(times[turn] for times in chains) for turn in (0, turns // 2 - 1, turns - 1)]
    every = [seconds for times in chains for seconds in times]
    cells += [statistics.median(every), quantile(every, 0.95)]
    return [name, *(f"{1000 * cell:.1f}" for cell in cells)]


def _chain(ask: Ask, turns: int, store: bool) -> list[float]:
    """Seconds to the first item of every turn."""
    body: dict[str, Any] = {"model": "tape", "tools": [TOOL], "store": store, "input": "Find the fault."}
    times = []
    for _ in range(turns):
        began, first, last = time.perf_counter(), 0.0, dict[str, Any]()
        for event in ask(body):
            if not first and event["type"] == "response.output_item.added":
                first = time.perf_counter() - began
            last = event
        assert last["type"] == "response.completed", last
        times.append(first)
        response = last["response"]
        output = {"type": "function_call_output", "call_id": response["output"][-1]["call_id"], "output": FILE}
        body = {**body, "input": [output], "previous_response_id": response["id"]}
    return times


@contextmanager
def _http(port: int) -> Iterator[Ask]:
    """Connection that stays open, as with clients."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}

    def ask(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        connection.request("POST", "/v1/responses", json.dumps({**body, "stream": True}), headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        for line in answer:
            if line.startswith(b"data: {"):
                yield json.loads(line[6:])

    try:
        yield ask
    finally:
        connection.close()


@contextmanager
def _socket(port: int) -> Iterator[Ask]:
    with connect(f"ws://127.0.0.1:{port}/v1/responses", additional_headers={"Authorization": f"Bearer {KEY}"}) as socket:

        def ask(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
            socket.send(json.dumps({"type": "response.create", **body}))
            while True:
                event: dict[str, Any] = json.loads(socket.recv(60))
                yield event
                if event["type"] in ("response.completed", "response.failed", "response.incomplete", "error"):
                    return

        yield ask


def write_tape(folder: Path, text: str) -> Path:
    """Write a tape with one recording of `text`, a token in each chunk."""
    ids = load_harmony_encoding("HarmonyGptOss").encode(text, allowed_special="all")
    tape = folder / "tape.jsonl"
    tape.write_text(json.dumps({"chunks": [{"tokens": [token]} for token in ids]}) + "\n")
    return tape


if __name__ == "__main__":
    main()
