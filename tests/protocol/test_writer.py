"""The writer's stages, its endings, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import (
    Annotation,
    Arguments,
    Call,
    CodeCall,
    CodeResult,
    CodeStarted,
    Delta,
    EndItem,
    FileResult,
    FileSearch,
    ForItem,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    OutputProblem,
    ReasoningDelta,
    SearchStarted,
    TextDelta,
    WebResult,
    WebSearch,
)
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.output_problems import INVALID_TOOL_ARGUMENTS, MAX_PROBLEMS, MESSAGES
from responses_app.protocol.reducer import fold
from responses_app.protocol.writer import Writer
from tests.support.protocol.response_strategies import (
    CITATION,
    ENDINGS,
    USAGE,
    counted,
    items,
    kinds,
    response,
    write_response,
    writer,
)

LOGPROBS = [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]


def opened(*pieces: Delta) -> Writer:
    w = writer()
    w.open()
    for piece in pieces:
        w.write(piece)
    return w


def test_writer_opens_with_created_and_in_progress() -> None:
    events = writer().open()
    assert [event["type"] for event in events] == ["response.created", "response.in_progress"]
    assert [event["response"]["status"] for event in events] == ["in_progress", "in_progress"]


def test_a_queued_response_waits_until_it_starts() -> None:
    w = writer(status="queued")
    events = w.open()
    assert [(event["type"], event["response"]["status"]) for event in events] == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
    ]
    assert w.response["status"] == "queued"
    with pytest.raises(ProtocolError, match="queued"):
        w.write(TextDelta("a"))
    assert [(event["type"], event["sequence_number"]) for event in w.start()] == [("response.in_progress", 2)]
    assert w.response["status"] == "in_progress"


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_response_that_ends_in_the_queue_has_been_in_progress_once(ending: str) -> None:
    w = writer(status="queued")
    events = w.open() + ENDINGS[ending](w)
    assert [event["type"] for event in events][:3] == ["response.created", "response.queued", "response.in_progress"]
    assert validate(events) == []


def test_the_response_comes_last_in_its_events_so_that_its_bytes_can_be_cut_out() -> None:
    events, _ = write_response([TextDelta("a")])
    life = [event for event in events if "response" in event]
    assert [list(event) for event in life] == [["type", "sequence_number", "response"]] * 3


def test_snapshots_keep_the_keys_of_the_response_they_were_given_in_order() -> None:
    events, _ = write_response([TextDelta("a")])
    assert [list(event["response"]) for event in events if "response" in event] == [list(response())] * 3


# What it refuses

REFUSED: Final[dict[str, tuple[list[Delta], Delta]]] = {
    "arguments without a call": ([], Arguments("a")),
    "arguments in a message": ([TextDelta("a")], Arguments("a")),
    "a citation without a message": ([], Annotation(CITATION)),
    "a citation of a closed message": ([TextDelta("a"), EndItem()], Annotation(CITATION)),
    "arguments behind a call that another item ended": ([McpCall("m", "t"), EndItem()], Arguments("a")),
    "a result for the call before the current item": ([McpCall("m", "t"), TextDelta("a")], McpResult("a")),
    "code after the code was complete": ([CodeCall("c"), CodeStarted()], Arguments("a")),
    "arguments after they were complete": ([McpCall("m", "t"), EndItem()], ForItem(0, Arguments("a"))),
    "a result without a call": ([], McpResult("a")),
    "the wrong result": ([WebSearch()], FileResult([])),
    "a search result for code": ([CodeCall("c")], WebResult({"type": "search"})),
    "tools without a listing": ([TextDelta("a")], McpTools()),
    "interpreting without code": ([Call("f")], CodeStarted()),
    "searching without a search": ([McpList("m")], SearchStarted()),
    "code outputs without code": ([], CodeResult()),
}


@pytest.mark.parametrize("name", REFUSED)
def test_writer_refuses_a_misplaced_delta_and_is_unchanged(name: str) -> None:
    before, piece = REFUSED[name]
    w, calm = opened(*before), opened(*before)
    with pytest.raises(ProtocolError):
        w.write(piece)
    assert w.fail("server_error", "Our bug.") == calm.fail("server_error", "Our bug.")


@pytest.mark.parametrize("piece", [WebSearch(), McpCall("m", "t"), McpList("m"), CodeCall("c"), FileSearch()])
def test_response_does_not_complete_while_a_tool_works(piece: Delta) -> None:
    w = opened(piece)
    with pytest.raises(ProtocolError, match="no result"):
        w.complete(1, USAGE)
    assert not w.ended


LATE: Final[dict[str, Callable[[Writer], list[Event]]]] = {
    **ENDINGS,
    "open": Writer.open,
    "start": Writer.start,
    "write": lambda w: w.write(TextDelta("a")),
}


@pytest.mark.parametrize("act", LATE)
@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_comes_after_the_terminal_event(act: str, ending: str) -> None:
    """G6, law 6: a single terminal event, always."""
    w = opened(TextDelta("a"))
    ENDINGS[ending](w)
    with pytest.raises(ProtocolError):
        LATE[act](w)


@pytest.mark.parametrize("act", sorted(set(LATE) - {"open"}))
def test_nothing_comes_before_the_first_event(act: str) -> None:
    with pytest.raises(ProtocolError):
        LATE[act](writer())


def test_writer_refuses_a_value_that_is_no_delta() -> None:
    with pytest.raises(ProtocolError, match="str"):
        opened().write("text")  # type: ignore[arg-type]


def test_writer_refuses_an_ended_response() -> None:
    with pytest.raises(ProtocolError):
        Writer(response(status="completed"), counted())


# Empty sayings


@pytest.mark.parametrize(
    "piece",
    [TextDelta(""), ReasoningDelta(""), EndItem(), TextDelta("", LOGPROBS)],
)
def test_an_empty_saying_opens_no_item(piece: Delta) -> None:
    """A7."""
    assert opened().write(piece) == []
    assert opened(ReasoningDelta("a")).write(piece) == [] or piece == EndItem()


def test_an_empty_saying_does_not_close_the_open_item() -> None:
    events, _ = write_response([TextDelta("a"), ReasoningDelta(""), TextDelta("b")])
    assert [item["content"][0]["text"] for item in items(events)] == ["ab"]


def test_a_wholly_empty_answer_is_one_message_with_one_empty_text() -> None:
    events, _ = write_response([TextDelta(""), ReasoningDelta("")])
    assert kinds(events) == [
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert items(events)[0]["content"] == [{"type": "output_text", "text": "", "annotations": [], "logprobs": []}]
    assert validate(events) == []


def test_a_warm_up_has_no_output() -> None:
    w = opened()
    assert w.complete(1, USAGE, fill=False)[-1]["response"]["output"] == []


def test_an_answer_of_reasoning_alone_is_not_wholly_empty() -> None:
    assert [item["type"] for item in items(write_response([ReasoningDelta("a")])[0])] == ["reasoning"]


def test_log_probabilities_of_an_empty_text_wait_for_the_text_they_belong_to() -> None:
    events, _ = write_response([TextDelta("", LOGPROBS), TextDelta("a", LOGPROBS), TextDelta("", LOGPROBS)])
    assert items(events)[0]["content"][0]["logprobs"] == LOGPROBS * 3
    assert [event["delta"] for event in events if event["type"] == "response.output_text.delta"] == ["a", ""]


def test_log_probabilities_are_not_handed_to_another_phase() -> None:
    events, _ = write_response([TextDelta("", LOGPROBS, "commentary"), TextDelta("a", LOGPROBS, "final_answer")])
    assert items(events)[0]["content"][0]["logprobs"] == LOGPROBS


# Which item a piece belongs to


def test_another_phase_opens_another_message() -> None:
    events, _ = write_response(
        [TextDelta("a", phase="commentary"), TextDelta("b", phase="final_answer"), TextDelta("c", phase="final_answer")]
    )
    assert [(item["phase"], item["content"][0]["text"]) for item in items(events)] == [
        ("commentary", "a"),
        ("final_answer", "bc"),
    ]


def test_phase_is_no_key_of_a_message_without_phase() -> None:
    assert "phase" not in items(write_response([TextDelta("a")])[0])[0]


def test_a_break_opens_another_item_of_the_same_kind() -> None:
    events, _ = write_response(
        [TextDelta("a"), EndItem(), TextDelta("b"), EndItem(), ReasoningDelta("c"), EndItem(), ReasoningDelta("d")]
    )
    assert [item["type"] for item in items(events)] == ["message", "message", "reasoning", "reasoning"]


def test_reasoning_is_sealed_once() -> None:
    """The blob is the same in every snapshot."""
    seals: list[Any] = []

    def seal(item: Any) -> str:
        seals.append(item)
        return f"sealed {item['content'][0]['text']}"

    w = Writer(response(), counted(), seal)
    events = [*w.open(), *w.write(ReasoningDelta("r")), *w.write(TextDelta("t")), *w.complete(1, USAGE)]
    assert [item["status"] for item in seals] == ["completed"]
    assert w.output.items[0]["encrypted_content"] == "sealed r"
    assert "encrypted_content" not in w.output.items[1]
    assert fold(events) == w.response
    assert validate(events) == []


# Endings


def test_complete_tells_time_usage_and_tier() -> None:
    final = write_response([TextDelta("a")])[0][-1]
    assert final["type"] == "response.completed"
    written = {key: final["response"][key] for key in ("status", "completed_at", "usage", "service_tier", "error")}
    assert written == {
        "status": "completed",
        "completed_at": 1_790_000_009,
        "usage": USAGE,
        "service_tier": "default",
        "error": None,
    }


CUT: Final[dict[str, tuple[list[Delta], list[str], dict[str, Any]]]] = {
    "text": (
        [TextDelta("half")],
        ["output_text.done", "content_part.done"],
        {"content": [{"type": "output_text", "text": "half", "annotations": [], "logprobs": []}]},
    ),
    "reasoning": (
        [ReasoningDelta("half")],
        ["reasoning_text.done", "content_part.done"],
        {"content": [{"type": "reasoning_text", "text": "half"}]},
    ),
    "arguments": ([Call("f"), Arguments('{"a"')], ["function_call_arguments.done"], {"arguments": '{"a"'}),
    "no arguments yet": ([Call("f")], ["function_call_arguments.done"], {"arguments": ""}),
    "input": ([Call("f", "custom"), Arguments("a")], ["custom_tool_call_input.done"], {"input": "a"}),
    "mcp call": ([McpCall("m", "t"), Arguments("{")], ["mcp_call_arguments.done"], {"arguments": "{", "output": None}),
    "code": ([CodeCall("c"), Arguments("1+")], ["code_interpreter_call_code.done"], {"code": "1+", "outputs": None}),
    "running code": ([CodeCall("c"), Arguments("1"), CodeStarted()], [], {"code": "1"}),
    "web search": ([WebSearch()], [], {"action": {"type": "search", "query": ""}}),
    "file search": ([FileSearch(["q"])], [], {"queries": ["q"], "results": None}),
}


@pytest.mark.parametrize("ending", ["cut", "fail", "cancel"])
@pytest.mark.parametrize("name", CUT)
def test_open_item_closes_incomplete_with_its_text(name: str, ending: str) -> None:
    """G2, C1, C3, rule C4: the channels get their `.done`, earlier items stay completed."""
    pieces, closing, remaining = CUT[name]
    before: list[Delta] = [TextDelta("whole", phase="commentary"), EndItem(), *pieces]
    w = opened(*before)
    written = ENDINGS[ending](w)
    assert [name for name in kinds(written) if name != "error"] == [*closing, "output_item.done"]
    assert [item["status"] for item in w.output.items] == ["completed", "incomplete"]
    assert {key: w.output.items[1][key] for key in remaining} == remaining
    assert validate(write_response(before, ending)[0]) == []


@pytest.mark.parametrize("ending", ["cut", "fail", "cancel"])
def test_a_listing_that_is_cut_short_is_one_that_failed(ending: str) -> None:
    """`mcp_list_tools` has no status, so the error has to say it."""
    events, w = write_response([McpList("m")], ending)
    assert "mcp_list_tools.failed" in kinds(events)
    assert "status" not in w.output.items[0]
    assert w.output.items[0]["error"]
    assert validate(events) == []


def test_cut_says_why() -> None:
    """G1, G3."""
    final = write_response([TextDelta("a")], "cut")[0][-1]
    assert final["type"] == "response.incomplete"
    assert final["response"]["status"] == "incomplete"
    assert final["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert final["response"]["completed_at"] is None


def test_open_item_closes_before_the_error() -> None:
    """G4, law 6."""
    events, _ = write_response([TextDelta("a")], "fail")
    assert [event["type"] for event in events[-3:]] == ["response.output_item.done", "error", "response.failed"]


def test_the_error_is_told_flat_and_nested_in_one_object() -> None:
    events, _ = write_response([], "fail")
    flat = {"code": "engine_down", "message": "The engine is gone.", "param": None}
    assert events[-2] == {
        "type": "error",
        "sequence_number": events[-2]["sequence_number"],
        **flat,
        "error": {"type": "server_error", **flat},
    }


def test_the_snapshot_of_a_failure_has_a_code_that_clients_know() -> None:
    assert write_response([], "fail")[0][-1]["response"]["error"] == {"code": "server_error", "message": "The engine is gone."}
    w = opened()
    assert w.fail("rate_limit_exceeded", "Too many.")[-1]["response"]["error"]["code"] == "rate_limit_exceeded"


def test_a_failure_may_be_told_without_an_error_event() -> None:
    events, _ = write_response([TextDelta("a")], "fail quietly")
    assert "error" not in [event["type"] for event in events]
    assert events[-1]["response"]["error"]["code"] == "server_error"


def test_a_cancelled_response_ends_as_failed_with_status_cancelled_and_no_error() -> None:
    final = write_response([TextDelta("a")], "cancel")[0][-1]
    assert (final["type"], final["response"]["status"], final["response"]["error"]) == ("response.failed", "cancelled", None)


# Arguments that do not parse

GARBLED = ['{"a": ', "{'a': 1}", '{"a": NaN}', "[" * 100_000, '{"a": 1} and more']


@pytest.mark.parametrize("text", GARBLED, ids=range(len(GARBLED)))
def test_arguments_that_are_no_json_are_completed_and_named_in_the_problems(text: str) -> None:
    events, w = write_response([TextDelta("a"), Call("f"), Arguments(text)])
    assert [item["status"] for item in w.output.items] == ["completed", "completed"]
    assert w.output.items[1]["arguments"] == text
    assert [event["type"] for event in events[-2:]] == ["response.output_item.done", "response.completed"]
    message, item_id = MESSAGES[INVALID_TOOL_ARGUMENTS], w.response["output"][1]["id"]
    problem = {"type": INVALID_TOOL_ARGUMENTS, "message": message, "output_index": 1, "item_id": item_id}
    assert w.response["output_problems"] == [problem]
    assert w.response["usage"] == USAGE
    assert validate(events) == []


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([OutputProblem("unknown_tool", item="next"), TextDelta("a")], [0]),
        ([TextDelta("a"), OutputProblem("unknown_tool")], [0]),
        (
            [TextDelta("a"), EndItem(), OutputProblem("unknown_tool"), OutputProblem("unknown_tool", item="next"), Call("f")],
            [0, 1],
        ),
        ([TextDelta("a"), OutputProblem("unknown_tool"), OutputProblem("unknown_tool")], [0]),
        ([TextDelta("a"), OutputProblem("unknown_tool", item="none")], [None]),
        ([TextDelta("a"), OutputProblem("unknown_tool", item="next")], [None]),
        ([OutputProblem("unknown_tool"), TextDelta("a")], [None]),
    ],
)
def test_problems_name_their_items(deltas: list[Delta], expected: list[int | None]) -> None:
    events, w = write_response(deltas, "cut")
    assert [problem.get("output_index") for problem in w.response["output_problems"]] == expected
    ids = [item["id"] for item in w.response["output"]]
    named = [problem.get("item_id") for problem in w.response["output_problems"]]
    assert named == [None if index is None else ids[index] for index in expected]
    assert validate(events) == []


def test_problem_has_the_text_that_no_item_has() -> None:
    _, w = write_response([OutputProblem("unfinished_marker", "<tool", "none")])
    problem = {"type": "unfinished_marker", "message": MESSAGES["unfinished_marker"], "text": "<tool"}
    assert problem in w.response["output_problems"]


def test_problems_are_limited() -> None:
    _, w = write_response([OutputProblem("unexpected_marker", str(number)) for number in range(MAX_PROBLEMS + 1)])
    assert len(w.response["output_problems"]) == MAX_PROBLEMS


def test_empty_output_is_a_problem() -> None:
    events, w = write_response([])
    assert [(each["type"], each["output_index"]) for each in w.response["output_problems"]] == [("empty_output", 0)]
    assert validate(events) == []


def test_a_cut_response_may_hold_a_call_that_does_not_parse() -> None:
    events, w = write_response([Call("f"), Arguments("{"), TextDelta("a")], "cut")
    assert [item["status"] for item in w.output.items] == ["completed", "incomplete"]
    assert validate(events) == []
