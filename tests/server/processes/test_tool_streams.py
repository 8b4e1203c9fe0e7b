"""Clock of tool calls over real connections: events arrive when the tool is entered and left, and quiet tools have heartbeats.

A heartbeat is a comment of a stream, or a ping of a WebSocket.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from websockets.frames import Frame, Opcode
from websockets.sync.client import ClientConnection, connect

from responses_app.dialects.harmony.dialect import HarmonyDialect
from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

HEARTBEAT_S: Final = 1
# The engine pauses between two calls until this file is in the folder.
CONTINUE: Final = "continue"
TOOL: Final = {"type": "mcp", "server_label": "clock", "require_approval": "never"}
# Events with their time of arrival; the type of a heartbeat is the empty text.
Arrival: TypeAlias = tuple[float, dict[str, Any]]
OnEvent: TypeAlias = Callable[[dict[str, Any]], object]
HEARTBEAT: Final = {"type": ""}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clock")


@pytest.fixture(scope="module")
def server(folder: Path, mcp_url: str) -> Iterator[Server]:
    with Server(
        folder / "data",
        "--engine",
        f"script://{record(folder)}",
        RESPONSES_MCP_SERVERS=json.dumps({"clock": {"url": mcp_url}}),
        RESPONSES_HEARTBEAT=str(HEARTBEAT_S),
    ) as server:
        yield server.ready()


def record(folder: Path) -> Path:
    """Write a tape: answers behind results, and calls of the tools that the inputs name."""
    arguments = json.dumps({"path": str(folder / "stamps"), "gate": str(folder / "gate")})
    final = "<|channel|>final<|message|>Done.<|return|>"
    first = frame("stamp", arguments, "<|end|>") + "<|start|>assistant<|channel|>analysis<|message|>One more call."
    second = f"<|end|><|start|>assistant{frame('add', json.dumps({'a': 2, 'b': 3}))}"
    lines = [
        ("stamped", [final]),
        ("done", [final]),
        (" use two tools", [first, second]),
        (" use a stamp", [frame("stamp", arguments)]),
    ]
    encoding = HarmonyDialect().encoding
    recordings = [{"match": encoding.encode(words), "chunks": steps(folder, texts)} for words, texts in lines]
    tape = folder / "tape.jsonl"
    tape.write_text("".join(f"{json.dumps(one)}\n" * 8 for one in recordings))
    return tape


def frame(tool: str, arguments: str, end: str = "<|call|>") -> str:
    return f"<|channel|>commentary to=functions.clock__{tool} <|constrain|>json<|message|>{arguments}{end}"


def steps(folder: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the steps of a recording of `texts`, with a pause behind each but the last until there is the file CONTINUE."""
    encoding, tape_steps = HarmonyDialect().encoding, list[dict[str, Any]]()
    for text in texts:
        tape_steps += [{"tokens": [one]} for one in encoding.encode(text, allowed_special="all")]
        tape_steps.append({"until": str(folder / CONTINUE)})
    return tape_steps[:-1]


def over_sse(server: Server, words: str, on_event: OnEvent) -> list[Arrival]:
    """Stream a response as server-sent events. `on_event` gets each event when it arrives."""
    arrivals: list[Arrival] = []
    body = {"model": "tape", "input": f"Please{words}", "tools": [TOOL], "stream": True}
    headers = {"Authorization": f"Bearer {server.key}"}
    with plain_http.stream("POST", f"{server.url}/v1/responses", json=body, headers=headers, timeout=60) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            if line.startswith("data: {"):
                arrivals.append((time.time(), json.loads(line[6:])))
            elif line.startswith(":"):
                arrivals.append((time.time(), HEARTBEAT))
            else:
                continue
            on_event(arrivals[-1][1])
    return arrivals


def over_websocket(server: Server, words: str, on_event: OnEvent) -> list[Arrival]:
    """Stream a response over a WebSocket. `on_event` gets each event when it arrives."""
    arrivals: list[Arrival] = []

    class StreamConnection(ClientConnection):
        """Connection that records the pings of the server."""

        def process_event(self, event: Any) -> None:
            if isinstance(event, Frame) and event.opcode is Opcode.PING:
                arrivals.append((time.time(), HEARTBEAT))
                on_event(HEARTBEAT)
            super().process_event(event)

    headers = {"Authorization": f"Bearer {server.key}"}
    url = f"{server.url.replace('http', 'ws')}/v1/responses"
    with connect(url, additional_headers=headers, create_connection=StreamConnection) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "tape", "input": f"Please{words}", "tools": [TOOL]}))
        while not arrivals or arrivals[-1][1]["type"] != "response.completed":
            event = json.loads(socket.recv(60))
            assert event["type"] not in ("error", "response.failed"), event
            arrivals.append((time.time(), event))
            on_event(event)
    return arrivals


def arrival(arrivals: list[Arrival], kind: str, item: str = "mcp_call") -> float:
    """Return the time of the event `kind` of the call."""
    return next(at for at, event in arrivals if event["type"] == kind and event.get("item", {"type": item})["type"] == item)


def stamps(folder: Path) -> list[float]:
    file = folder / "stamps"
    return [float(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.parametrize("read", [over_sse, over_websocket])
def test_events_of_a_call_arrive_when_the_tool_is_entered_and_left(
    server: Server, folder: Path, read: Callable[[Server, str, OnEvent], list[Arrival]]
) -> None:
    (folder / "gate").unlink(missing_ok=True)
    before = len(stamps(folder))

    def open_gate(event: dict[str, Any]) -> None:
        # The tool is entered although the client has the arguments only.
        if event["type"] == "response.mcp_call_arguments.done":
            wait_until(lambda: len(stamps(folder)) > before)
            (folder / "gate").touch()

    arrivals = read(server, " use a stamp", open_gate)
    _, left = stamps(folder)[before:]
    began = arrival(arrivals, "response.output_item.added")
    assert (
        began <= arrival(arrivals, "response.mcp_call_arguments.done") < left < arrival(arrivals, "response.output_item.done")
    )


@pytest.mark.parametrize("read", [over_sse, over_websocket])
def test_call_runs_while_the_model_writes_the_next_call(
    server: Server, folder: Path, read: Callable[[Server, str, OnEvent], list[Arrival]]
) -> None:
    """The model continues behind the result of the first call."""
    (folder / "gate").touch()
    (folder / CONTINUE).unlink(missing_ok=True)
    before = len(stamps(folder))

    def continue_behind_result(event: dict[str, Any]) -> None:
        if event["type"] == "response.output_item.done" and event["item"]["type"] == "mcp_call":
            (folder / CONTINUE).touch()

    arrivals = read(server, " use two tools", continue_behind_result)
    entered, left = stamps(folder)[before:]
    ends = [
        at for at, event in arrivals if event["type"] == "response.output_item.done" and event["item"]["type"] == "mcp_call"
    ]
    second = next(at for at, event in reversed(arrivals) if event["type"] == "response.mcp_call.in_progress")
    assert entered < left < ends[0]
    assert ends[0] < second < ends[1]


@pytest.mark.parametrize("read", [over_sse, over_websocket])
def test_quiet_tool_has_heartbeats(server: Server, folder: Path, read: Callable[[Server, str, OnEvent], list[Arrival]]) -> None:
    (folder / "gate").unlink(missing_ok=True)
    seen: list[dict[str, Any]] = []

    def open_gate(event: dict[str, Any]) -> None:
        seen.append(event)
        if seen.count(HEARTBEAT) == 3:
            (folder / "gate").touch()

    arrivals = read(server, " use a stamp", open_gate)
    beats = [at for at, event in arrivals if event is HEARTBEAT]
    began, ended = arrival(arrivals, "response.mcp_call_arguments.done"), arrival(arrivals, "response.output_item.done")
    assert len([at for at in beats if began < at < ended]) >= 3
