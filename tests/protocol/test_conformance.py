"""Tests of the stream validator: clean streams pass, and broken ones are caught for every rule, by its name."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.protocol.conformance import StreamValidator, validate
from responses_app.protocol.conformance.spec import EVENTS
from responses_app.protocol.deltas import Call, Delta, McpList, McpTools, ReasoningDelta, TextDelta, WebResult, WebSearch
from responses_app.protocol.events import Event
from tests.support.protocol.response_strategies import SEARCHED, SHELL, TOOL, items, speeches, write_response

LOGPROBS = [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]
Change = Callable[[list[Event]], list[Event] | None]


@cache
def _recorded(ending: str) -> str:
    return (Path(__file__).parent / "streams" / f"{ending}.jsonl").read_text()


def rich(ending: str = "complete") -> list[Event]:
    """Return a recorded stream of many families, with summaries, refusals and several parts, for changes by a test."""
    return [json.loads(line) for line in _recorded(ending).splitlines()]


def at(events: list[Event], name: str, nth: int = 0) -> int:
    """Return the index of the nth event of this name."""
    full = name if name == "error" else f"response.{name}"
    return [index for index, event in enumerate(events) if event["type"] == full][nth]


def numbered(events: list[Event]) -> list[Event]:
    """The events, numbered anew, so that only the rule in question is broken."""
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def put(name: str, *path: str | int, to: Any, nth: int = 0) -> Change:
    """Set a value within the nth event of this name."""

    def change(events: list[Event]) -> None:
        spot: Any = events[at(events, name, nth)]
        for key in path[:-1]:
            spot = spot[key]
        spot[path[-1]] = to

    return change


def lose(name: str, *path: str | int, nth: int = 0) -> Change:
    """Take a key out of the nth event of this name; without a path, the event."""

    def change(events: list[Event]) -> list[Event] | None:
        index = at(events, name, nth)
        if not path:
            return numbered(events[:index] + events[index + 1 :])
        spot: Any = events[index]
        for key in path[:-1]:
            spot = spot[key]
        del spot[path[-1]]
        return None

    return change


def twice(name: str, nth: int = 0) -> Change:
    """Say the nth event of this name again."""

    def change(events: list[Event]) -> list[Event]:
        index = at(events, name, nth)
        return numbered(events[: index + 1] + events[index:])

    return change


def move(name: str, behind: str, *, nth: int = 0, behind_nth: int = 0) -> Change:
    """Move the nth event of this name behind another event."""

    def change(events: list[Event]) -> list[Event]:
        event = events.pop(at(events, name, nth))
        events.insert(at(events, behind, behind_nth) + 1, event)
        return numbered(events)

    return change


def add(event: Event, behind: str, nth: int = 0) -> Change:
    """Insert another event behind the nth event of this name."""

    def change(events: list[Event]) -> list[Event]:
        events.insert(at(events, behind, nth) + 1, event)
        return numbered(events)

    return change


def end(**changes: Any) -> Change:
    """Change the terminal snapshot."""

    def change(events: list[Event]) -> None:
        events[-1]["response"].update(changes)

    return change


def both(*changes: Change) -> Change:
    """Apply two changes in turn."""

    def change(events: list[Event]) -> list[Event]:
        for step in changes:
            events = step(events) or events
        return events

    return change


def never_done(events: list[Event]) -> list[Event]:
    """Leave the last item open and out of the output."""
    events[-1]["response"]["output"].pop()
    return numbered([*events[: at(events, "output_item.done", -1)], events[-1]])


ERROR = {"type": "error", "code": "x", "message": "m", "param": None, "error": {"message": "m"}}
TEXT = {
    "type": "response.output_text.delta",
    "item_id": "msg_2",
    "output_index": 2,
    "content_index": 0,
    "delta": "x",
    "logprobs": [],
}
WEB = "web_search_call"
CODE = "code_interpreter_call"
USAGE_LIE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 3}

# (rule, what is broken, how); the ending is `complete` where nothing else is said.
PROBLEM: Final = {"type": "empty_output", "message": "m"}
BROKEN: Final[list[tuple[str, str, Change]]] = [
    ("S0", "an event without type", lose("refusal.delta", "type")),
    ("S0", "a type that is no string", put("refusal.delta", "type", to=7)),
    ("S0", "an event that is a list", lambda events: [*events, []]),  # type: ignore[list-item]
    ("S2", "D1: a placeholder", put("refusal.delta", "sequence_number", to=-1)),
    ("S2", "D2, D3: no number", lose("refusal.delta", "sequence_number")),
    ("S2", "D3: a constant", put("output_item.done", "sequence_number", to=1)),
    ("S2", "D4: a gap", lambda events: [e for e in events if e["type"] != "response.refusal.delta"]),
    ("S2", "a number that is true", put("in_progress", "sequence_number", to=True)),
    ("S2", "a text for a number", put("in_progress", "sequence_number", to="1")),
    ("S2", "counting from 1", lambda events: [{**e, "sequence_number": e["sequence_number"] + 1} for e in events]),
    ("S5", "an event that does not exist", put("refusal.delta", "type", to="response.cancelled")),
    ("S5", "a foreign event without slug", put("refusal.delta", "type", to=":event")),
    ("S5", "an item that does not exist", put("output_item.added", "item", "type", to="tool")),
    ("S6", "a lane on SSE", put("refusal.delta", "stream_id", to="lane")),
    ("S6", "a null lane on SSE", put("refusal.delta", "stream_id", to=None)),
    ("L1", "C4: no created", lose("created")),
    ("L1", "created twice", twice("created")),
    ("L1", "created late", move("created", "in_progress")),
    ("L2", "C4: no in_progress", lose("in_progress")),
    ("L2", "in_progress twice", twice("in_progress")),
    ("L2", "in_progress after an item", move("in_progress", "output_item.added")),
    ("L2", "queued after in_progress", add({"type": "response.queued", "response": {}}, "in_progress")),
    ("L3", "C9: a snapshot without tools", lose("in_progress", "response", "tools")),
    ("L3", "C9: a terminal snapshot without tool_choice", lose("completed", "response", "tool_choice")),
    ("L3", "no snapshot", put("in_progress", "response", to=None)),
    ("L3", "A9: another response id", put("completed", "response", "id", to="resp_2")),
    ("L3", "a created response that is completed", put("created", "response", "status", to="completed")),
    ("L3", "in_progress with status queued", put("in_progress", "response", "status", to="queued")),
    ("L3", "in_progress with output", put("in_progress", "response", "output", to=[{"type": "message"}])),
    ("L4", "G6: text after the end", add(TEXT, "completed")),
    ("L4", "G7: two ends", twice("completed")),
    ("L4", "failed after completed", add({"type": "response.failed", "response": {}}, "completed")),
    ("L5", "G4: no end", lose("completed")),
    ("L5", "nothing at all", lambda events: []),
    ("L6", "an error that tells nothing", add({"type": "error"}, "output_item.done", -1)),
    ("L6", "an error that is no end", add(ERROR, "output_item.done", 1)),
    ("L6", "an error before completed", add(ERROR, "output_item.done", -1)),
    ("I1", "B3: an output_index that jumps", put("output_item.added", "output_index", to=5, nth=3)),
    ("I1", "B3: an output_index twice", put("output_item.added", "output_index", to=0, nth=3)),
    ("I1", "B2: a negative output_index", put("output_text.delta", "output_index", to=-1)),
    ("I1", "no output_index", lose("output_item.done", "output_index")),
    ("I1", "C8: a message without content", lose("output_item.added", "item", "content", nth=2)),
    ("I1", "E1: a call without a name", put("output_item.added", "item", "name", to=None, nth=3)),
    ("I1", "a call without a call_id", lose("output_item.added", "item", "call_id", nth=3)),
    ("I1", "a message of nobody", lose("output_item.added", "item", "role", nth=2)),
    ("I1", "a call that opens with arguments", put("output_item.added", "item", "arguments", to="{}", nth=3)),
    ("I1", "an item that opens completed", put("output_item.added", "item", "status", to="completed", nth=2)),
    ("I1", "a search that opens with its action", put("output_item.added", "item", "action", to=SEARCHED, nth=7)),
    ("I2", "A5: an empty item_id", put("output_text.delta", "item_id", to="")),
    ("I2", "A8: another item_id", put("reasoning_text.delta", "item_id", to="rs_x")),
    ("I2", "A2: another id when done", put("output_item.done", "item", "id", to="msg_x", nth=2)),
    ("I2", "A1: another call_id when done", put("output_item.done", "item", "call_id", to="call_x", nth=3)),
    ("I2", "another type when done", put("output_item.done", "item", "type", to="reasoning", nth=2)),
    ("I2", "an id twice", put("output_item.added", "item", "id", to="mcpl_0", nth=2)),
    ("I2", "an empty id", put("output_item.added", "item", "id", to="", nth=2)),
    ("I2", "a call_id twice", put("output_item.added", "item", "call_id", to="call_4", nth=4)),
    ("I2", "an event of no item", put("output_text.delta", "output_index", to=99)),
    ("I3", "text in a reasoning item", put("reasoning_text.delta", "type", to="response.output_text.delta")),
    ("I3", "arguments in a custom call", put("custom_tool_call_input.delta", "type", to="response.mcp_call_arguments.delta")),
    ("I3", "a search in code", put(f"{CODE}.interpreting", "type", to=f"response.{WEB}.searching")),
    ("I4", "text after done", move("output_text.delta", "output_item.done", nth=1, behind_nth=2)),
    ("I4", "done twice", twice("output_item.done", 2)),
    ("I5", "C1, C5: an item that is never done", never_done),
    ("I6", "an item that is done in progress", put("output_item.done", "item", "status", to="in_progress", nth=2)),
    ("I6", "a search that is done searching", put("output_item.done", "item", "status", to="searching", nth=7)),
    ("I6", "a message that failed", put("output_item.done", "item", "status", to="failed", nth=2)),
    ("I7", "a listing without end", lose("mcp_list_tools.completed")),
    ("I7", "a search without beginning", lose(f"{WEB}.in_progress")),
    ("I7", "a search that ends early", move(f"{WEB}.searching", f"{WEB}.completed")),
    ("I7", "code that is run before it is complete", move(f"{CODE}.interpreting", f"{CODE}.in_progress")),
    ("I7", "code that is not run", lose(f"{CODE}.interpreting")),
    ("I7", "an mcp call that ends before its arguments", move("mcp_call.completed", "mcp_call.in_progress")),
    ("I7", "an mcp call that failed and is completed", put("mcp_call.completed", "type", to="response.mcp_call.failed")),
    ("C1", "B1: a content_index that is not reset", put("content_part.added", "content_index", to=1)),
    ("C1", "B2: a content_index of -1", put("content_part.added", "content_index", to=-1, nth=1)),
    ("C1", "two parts open", move("content_part.done", "content_part.added", nth=1, behind_nth=2)),
    ("C1", "a part that the item cannot hold", put("content_part.added", "part", "type", to="reasoning_text", nth=1)),
    ("C1", "a part that opens with text", put("content_part.added", "part", "text", to="a", nth=1)),
    ("C1", "a part that opens without annotations", lose("content_part.added", "part", "annotations", nth=1)),
    ("C1", "a part that is no object", put("content_part.added", "part", to=None)),
    ("C2", "C7: a delta without its part", lose("content_part.added", nth=1)),
    ("C2", "a null delta", put("output_text.delta", "delta", to=None)),
    ("C2", "a null delta of arguments", put("function_call_arguments.delta", "delta", to=None)),
    ("C2", "a refusal in a text", put("output_text.delta", "type", to="response.refusal.delta")),
    ("C2", "B2: a delta at -1", put("output_text.delta", "content_index", to=-1)),
    ("C3", "a text that is not its deltas", put("output_text.done", "text", to="other")),
    ("C3", "reasoning that is not its deltas", put("reasoning_text.done", "text", to="other")),
    ("C3", "arguments that are not their deltas", put("function_call_arguments.done", "arguments", to="{}")),
    ("C3", "C13: a delta lost", lose("function_call_arguments.delta")),
    ("C3", "a delta after done", move("output_text.delta", "output_text.done", nth=1)),
    ("C3", "done twice", twice("custom_tool_call_input.done")),
    ("C3", "text done twice", twice("refusal.done")),
    ("C4", "C1: no output_text.done", lose("output_text.done")),
    ("C4", "C6: no reasoning_text.done", lose("reasoning_text.done")),
    ("C4", "C3: no arguments.done", lose("function_call_arguments.done")),
    ("C4", "no input.done", lose("custom_tool_call_input.done")),
    ("C4", "no code.done", lose(f"{CODE}_code.done")),
    ("C5", "C1: no content_part.done", lose("content_part.done", nth=2)),
    ("C5", "a part closed twice", twice("content_part.done", 2)),
    ("C6", "A6: an item with other content", put("output_item.done", "item", "content", 0, "text", to="other", nth=2)),
    ("C6", "A10: an item without content", put("output_item.done", "item", "content", to=[], nth=2)),
    ("C6", "a part with another text", put("content_part.done", "part", "text", to="other", nth=1)),
    ("C6", "an item with other arguments", put("output_item.done", "item", "arguments", to="{}", nth=3)),
    ("C6", "an item with other input", put("output_item.done", "item", "input", to="", nth=4)),
    ("C7", "a completed call that does not parse", put("output_item.done", "item", "arguments", to='{"a":', nth=3)),
    ("C8", "an annotation_index that jumps", put("output_text.annotation.added", "annotation_index", to=1)),
    ("C8", "a citation that is lost", put("content_part.done", "part", "annotations", to=[], nth=1)),
    ("C9", "C10: a delta without logprobs", lose("output_text.delta", "logprobs")),
    ("C9", "null logprobs", put("output_text.done", "logprobs", to=None)),
    ("C9", "logprobs that are not those of the deltas", put("output_text.done", "logprobs", to=[])),
    ("R1", "a summary_index that jumps", put("reasoning_summary_part.added", "summary_index", to=2, nth=1)),
    ("R1", "two summary parts open", lose("reasoning_summary_part.done")),
    ("R2", "a summary part that is not its text", put("reasoning_summary_part.done", "part", "text", to="other")),
    ("R3", "an item with another summary", put("output_item.done", "item", "summary", to=[], nth=1)),
    ("T1", "G1: completed with status incomplete", end(status="incomplete")),
    ("T1", "completed with status cancelled", end(status="cancelled")),
    ("T2", "completed with an error", end(error={"code": "server_error", "message": "m"})),
    ("T3", "completed with incomplete_details", end(incomplete_details={"reason": "steered"})),
    ("T4", "completed at no time", end(completed_at=None)),
    ("T5", "G8: no usage", end(usage=None)),
    ("T5", "a sum that is wrong", end(usage=USAGE_LIE)),
    ("T5", "no details", end(usage={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})),
    ("T6", "A10: an empty output", end(output=[])),
    ("T6", "A6: an output that is no list", end(output=None)),
    ("T6", "C12: items in another order", lambda events: events[-1]["response"]["output"].reverse()),
    ("T6", "A2: another id in the output", put("completed", "response", "output", 2, "id", to="msg_x")),
    ("T7", "an incomplete item", put("completed", "response", "output", 2, "status", to="incomplete")),
    ("T8", "a problem without a message", end(output_problems=[{"type": "empty_output"}])),
    ("T8", "problems that are no list", end(output_problems="empty_output")),
    ("T8", "a problem behind the output", end(output_problems=[{**PROBLEM, "output_index": 1000, "item_id": "msg_x"}])),
    ("T8", "a problem with another id", end(output_problems=[{**PROBLEM, "output_index": 0, "item_id": "msg_x"}])),
]
# The same for other endings.
BROKEN_ENDINGS: Final[list[tuple[str, str, str, Change]]] = [
    ("T1", "cut", "G1: incomplete with status completed", end(status="completed")),
    ("T3", "cut", "G3: no incomplete_details", end(incomplete_details=None)),
    ("T4", "cut", "incomplete at a time", end(completed_at=5)),
    ("T5", "cut", "G8: no usage", end(usage=None)),
    ("I5", "cut", "an item that is never done", never_done),
    ("T2", "fail", "failed without error", end(error=None)),
    ("T1", "fail", "failed with status completed", end(status="completed")),
    ("T2", "cancel", "cancelled with an error", end(error={"code": "server_error", "message": "m"})),
    ("L6", "fail", "an error without message", both(lose("error", "message"), lose("error", "error"))),
    ("L5", "fail", "G4: an error and no end", lose("failed")),
    ("T6", "fail", "a failure that shows nothing", end(output=[])),
]
RULES: Final = {*["S0", "S2", "S5", "S6", "L1", "L2", "L3", "L4", "L5", "L6", "I1", "I2", "I3", "I4", "I5", "I6", "I7"]} | {
    *["C1", "C2", "C3", "C4", "C5", "C6", "C7", "C8", "C9", "R1", "R2", "R3", "T1", "T2", "T3", "T4", "T5", "T6", "T7", "T8"]
}


@pytest.mark.parametrize("ending", ["complete", "cut", "fail", "cancel"])
def test_the_streams_that_are_broken_below_are_clean_before(ending: str) -> None:
    assert validate(rich(ending)) == []


@pytest.mark.parametrize(
    ("rule", "change"), [(rule, change) for rule, _, change in BROKEN], ids=[f"{r}: {n}" for r, n, _ in BROKEN]
)
def test_validator_reports_the_rule(rule: str, change: Change) -> None:
    events = rich()
    events = events if (changed := change(events)) is None else changed
    assert rule in {broken.rule for broken in validate(events)}


@pytest.mark.parametrize(
    ("rule", "ending", "change"),
    [(rule, ending, change) for rule, ending, _, change in BROKEN_ENDINGS],
    ids=[f"{rule}: {ending}: {name}" for rule, ending, name, _ in BROKEN_ENDINGS],
)
def test_validator_reports_the_rule_at_the_end(rule: str, ending: str, change: Change) -> None:
    events = rich(ending)
    events = events if (changed := change(events)) is None else changed
    assert rule in {broken.rule for broken in validate(events)}


def test_every_rule_that_needs_no_sse_has_its_broken_stream() -> None:
    assert {rule for rule, _, _ in BROKEN} == RULES
    assert len(BROKEN) >= 33


def test_a_violation_names_the_rule_the_number_and_the_event() -> None:
    events = rich()
    put("output_text.done", "text", to="other")(events)
    number = at(events, "output_text.done")
    broken = next(broken for broken in validate(events) if broken.rule == "C3")
    assert (broken.number, broken.event) == (number, events[number])
    assert str(broken).startswith(f"C3  #{number} response.output_text.done  ")


def test_a_gap_is_told_once() -> None:
    events = rich()
    del events[10]
    assert [broken.rule for broken in validate(events)].count("S2") == 1


# Streams of others


def test_foreign_events_and_items_pass_under_their_slug() -> None:
    events = rich()
    events.insert(2, {"type": "acme:trace", "note": 1})
    assert validate(numbered(events)) == []


def test_obfuscation_and_the_name_in_arguments_done_are_no_violation() -> None:
    events = rich()
    events[at(events, "output_text.delta")]["obfuscation"] = "xx"
    events[at(events, "function_call_arguments.done")]["name"] = "f"
    assert validate(events) == []


def test_encrypted_content_may_differ_between_snapshots() -> None:
    events = rich()
    index = at(events, "output_item.done", 1)
    events[index]["item"]["encrypted_content"] = "one"
    events[-1]["response"]["output"][1]["encrypted_content"] = "two"
    assert validate(events) == []


def test_an_item_may_stay_open_when_the_response_fails() -> None:
    events = rich("fail")
    shown = items(events).pop()
    events = [e for e in events if not (e["type"] == "response.output_item.done" and e["item"]["id"] == shown["id"])]
    assert validate(numbered(events)) == []


def test_items_may_overlap() -> None:
    """Listings of several servers run side by side, and so may parallel calls."""
    events, _ = write_response([McpList("m"), McpTools([TOOL]), McpList("n"), McpTools([TOOL])])
    one, other = events[2:6], events[6:10]
    mixed = [event for pair in zip(one, other, strict=True) for event in pair]
    assert validate(numbered([*events[:2], *mixed, *events[10:]])) == []


@pytest.mark.parametrize(
    ("rule", "name", "key", "value"),
    [
        ("C1", "added", "command_index", 1),
        ("C1", "added", "command", "ls"),
        ("C2", "delta", "command_index", 1),
        ("C2", "delta", "delta", None),
        ("C3", "done", "command", "rm"),
    ],
)
def test_a_command_of_a_shell_is_a_text_of_its_own(rule: str, name: str, key: str, value: Any) -> None:
    events = json.loads(json.dumps(write_response([SHELL])[0]))
    assert validate(events) == []
    put(f"shell_call_command.{name}", key, to=value)(events)
    assert rule in {problem.rule for problem in validate(events)}


def test_the_commands_of_the_item_are_those_that_were_told() -> None:
    events = json.loads(json.dumps(write_response([SHELL])[0]))
    for event in events:
        if event["type"] == "response.output_item.done":
            event["item"]["action"]["commands"] = ["pwd"]
    assert "C6" in {problem.rule for problem in validate(events)}


def test_a_command_that_is_never_done_is_missed() -> None:
    events = json.loads(json.dumps(write_response([SHELL])[0]))
    assert "C4" in {problem.rule for problem in validate(lose("shell_call_command.done", nth=1)(events) or [])}


def test_shell_commands_have_no_item_id() -> None:
    shell = {"id": "sh_1", "type": "shell_call", "status": "completed", "call_id": "call_1", "action": {"commands": ["ls"]}}
    events, _ = write_response([])
    inner: list[Event] = [
        {"type": "response.output_item.added", "output_index": 0, "item": {**shell, "status": "in_progress"}},
        {"type": "response.shell_call_command.added", "output_index": 0, "command_index": 0, "command": ""},
        {"type": "response.shell_call_command.delta", "output_index": 0, "command_index": 0, "delta": "ls"},
        {"type": "response.shell_call_command.done", "output_index": 0, "command_index": 0, "command": "ls"},
        {"type": "response.output_item.done", "output_index": 0, "item": shell},
    ]
    last = {**events[-1], "response": {**events[-1]["response"], "output": [shell], "output_problems": []}}
    assert validate(numbered([*events[:2], *inner, last])) == []


def test_images_come_in_parts() -> None:
    image = {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk="}
    opened = {**image, "status": "in_progress", "result": None}
    events, _ = write_response([])
    where = {"item_id": "ig_1", "output_index": 0}
    stages = ["in_progress", "generating", "partial_image", "partial_image", "completed"]
    inner: list[Event] = [{"type": f"response.image_generation_call.{stage}", **where} for stage in stages]
    last = {**events[-1], "response": {**events[-1]["response"], "output": [image], "output_problems": []}}
    added: Event = {"type": "response.output_item.added", "output_index": 0, "item": opened}
    done: Event = {"type": "response.output_item.done", "output_index": 0, "item": image}
    assert validate(numbered([*events[:2], added, *inner, done, last])) == []
    assert {b.rule for b in validate(numbered([*events[:2], added, *inner[1:], done, last]))} == {"I7"}


# The strict profile


def plain(rename: bool) -> list[Event]:
    """A stream of the families that the strict profile knows, with its names for raw reasoning if asked."""
    events, _ = write_response([ReasoningDelta("r"), TextDelta("a"), Call("f")])
    names = {f"response.reasoning_text.{end}": f"response.reasoning.{end}" for end in ("delta", "done")} if rename else {}
    return [{**event, "type": names.get(event["type"], event["type"])} for event in events]


def test_the_strict_profile_has_24_events_and_its_own_names_for_raw_reasoning() -> None:
    assert (len(EVENTS["openai"]), len(EVENTS["openresponses"])) == (59, 24)
    assert validate(plain(rename=True), "openresponses") == []
    assert {broken.rule for broken in validate(plain(rename=False), "openresponses")} >= {"S5"}
    assert {broken.rule for broken in validate(plain(rename=True))} >= {"S5"}


def test_the_strict_profile_has_no_server_tools() -> None:
    assert {broken.rule for broken in validate(write_response([WebSearch(), WebResult(SEARCHED)])[0], "openresponses")} >= {
        "S5"
    }


def test_the_strict_profile_may_tell_raw_reasoning_in_the_end_alone() -> None:
    events = [e for e in plain(rename=True) if "reasoning." not in e["type"]]
    silent = [e for e in events if not (e["type"].startswith("response.content_part") and e["item_id"].startswith("rs_"))]
    assert validate(numbered(silent), "openresponses") == []
    assert {broken.rule for broken in validate(numbered(silent))} == {"C6"}


# Resume, lanes


@pytest.mark.parametrize("after", [0, 1, 2, 30])
def test_a_resume_goes_on_behind_the_cursor(after: int) -> None:
    assert validate(rich()[after + 1 :], starting_after=after) == []


def test_a_resume_that_begins_elsewhere_or_anew_is_caught() -> None:
    """I3 of the failure cases: `starting_after=0` is not everything."""
    assert {broken.rule for broken in validate(rich()[5:], starting_after=3)} == {"S2"}
    assert {broken.rule for broken in validate(rich(), starting_after=0)} >= {"S2", "L1"}


def test_a_resume_behind_the_end_is_empty() -> None:
    assert validate([], starting_after=50) == []


def test_a_resume_behind_queued_tells_in_progress() -> None:
    events = write_response([TextDelta("a")], status="queued")[0]
    assert [validate(events[n + 1 :], starting_after=n) for n in range(3)] == [[], [], []]


def test_a_resume_is_judged_from_where_it_begins() -> None:
    events = rich()
    put("custom_tool_call_input.done", "input", to="other")(events)
    put("completed", "response", "output", 7, "status", to="incomplete")(events)
    after = at(events, "output_item.done", 2)
    assert {broken.rule for broken in validate(events[after + 1 :], starting_after=after)} == {"C3", "C6", "T6", "T7"}


def test_every_event_of_a_lane_carries_its_name() -> None:
    lane = [{**event, "stream_id": "a"} for event in rich()]
    assert validate(lane, stream_id="a") == []
    lane[7]["stream_id"] = "b"
    del lane[8]["stream_id"]
    assert [broken.rule for broken in validate(lane, stream_id="a")] == ["S6", "S6"]


def test_steering_is_outside_the_count_of_a_socket() -> None:
    events = rich()
    events.insert(3, {"type": "response.steer.accepted", "sequence_number": 0, "steer": {}})
    assert validate(events, socket=True) == []
    assert {broken.rule for broken in validate(events)} == {"S2", "S5"}


# Anything may come

scalars = st.none() | st.booleans() | st.integers(-2, 3) | st.sampled_from(["", "rs_1", "in_progress", "completed"])
junk = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["type", "id"]), inner),
    max_leaves=3,
)
fields = ["item", "part", "response", "delta", "output_index", "content_index", "item_id", "logprobs", "text"]
rubbish = junk | st.builds(
    lambda kind, more: {**more, "type": kind},
    st.sampled_from(sorted(EVENTS["openai"])),
    st.fixed_dictionaries({}, optional=dict.fromkeys(fields, junk)),
)


@settings(max_examples=20, deadline=None)
@given(speeches(), st.data())
def test_validator_never_raises_on_changed_events(response: tuple[list[Delta], str], data: st.DataObject) -> None:
    """The validator answers with any value at any path."""
    events: list[Any] = json.loads(json.dumps(write_response(*response)[0]))
    for _ in range(3):
        event = data.draw(st.sampled_from(events))
        spot: Any = event
        key = data.draw(st.sampled_from(sorted(event)))
        if isinstance(event[key], dict) and event[key] and data.draw(st.booleans()):
            spot = event[key]
            key = data.draw(st.sampled_from(sorted(spot)))
        spot[key] = data.draw(junk)
    assert all(broken.rule and str(broken) for broken in validate(events))


@settings(max_examples=20, deadline=None)
@given(st.lists(rubbish, max_size=8), st.none() | st.integers(0, 3))
def test_validator_never_raises_on_arbitrary_json(events: list[Any], after: int | None) -> None:
    check = StreamValidator(starting_after=after)
    assert all(broken.rule for event in events for broken in check.feed(event))
    assert all(broken.rule == "L5" for broken in check.close())
