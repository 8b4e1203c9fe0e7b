"""Events of Messages: joined by a client they are the message, for every log, and the anthropic package accepts both."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from responses_app.api_formats.messages.message import message
from responses_app.api_formats.messages.stream import MessageEncoder
from responses_app.protocol.deltas import Delta
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.protocol.output_problems import CALL_LIMIT_REACHED
from tests.support.api_formats import anthropic_types
from tests.support.protocol.response_strategies import parallel_speeches, speeches, write_response


def events_of(log: Iterable[Event], *, shows_thinking: bool) -> list[dict[str, Any]]:
    """Encode a log and return the events of the stream."""
    encoder, made = MessageEncoder(shows_thinking=shows_thinking), []
    for event in log:
        for data in encoder.encode([EventFrame(event["sequence_number"], event["type"], orjson.dumps(event))]):
            name, _, body = data.partition(b"\n")
            made.append(orjson.loads(body.removeprefix(b"data: ")))
            assert name == b"event: " + made[-1]["type"].encode()
            # Also events that are made without a dict have the bytes of orjson.
            assert body == b"data: %b\n\n" % orjson.dumps(made[-1])
    return made


def joined(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Join the events as clients do, and check that blocks are open one after the other."""
    result: dict[str, Any] = {}
    is_open, arguments = False, ""
    for event in events:
        kind = event["type"]
        if kind == "message_start":
            result = event["message"]
        elif kind == "content_block_start":
            assert not is_open
            assert event["index"] == len(result["content"])
            result["content"].append(event["content_block"])
            is_open, arguments = True, ""
        elif kind == "content_block_delta":
            block, delta = result["content"][event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                arguments += delta["partial_json"]
            elif delta["type"] == "citations_delta":
                block["citations"] = [*block.get("citations", []), delta["citation"]]
            else:
                key = delta["type"].removesuffix("_delta")
                block[key] += delta[key]
        elif kind == "content_block_stop":
            is_open = False
            if "input" in result["content"][event["index"]]:
                result["content"][event["index"]]["input"] = arguments_of(arguments)
        elif kind == "message_delta":
            result |= {**event["delta"], "usage": event["usage"]}
    assert not is_open
    return result


def arguments_of(text: str) -> dict[str, Any]:
    """Parse arguments as clients do, but other text than JSON as the server does for a body."""
    try:
        arguments = json.loads(text or "{}")
    except ValueError:
        return {"INVALID_JSON": text}
    return arguments if isinstance(arguments, dict) else {"INVALID_JSON": text}


def check(log: list[Event], *, shows_thinking: bool) -> None:
    """Compare the joined events with the message of the last event."""
    events, response = events_of(log, shows_thinking=shows_thinking), log[-1]["response"]
    uses_mcp = any(item["type"] == "mcp_call" for item in response["output"])
    for event in events:
        if event["type"] != "error":
            anthropic_types.validate("RawMessageStreamEvent", orjson.dumps(event), beta=uses_mcp)
    if response["status"] in ("failed", "cancelled"):
        assert events[-1]["type"] == "error"
        return
    body = message(response, shows_thinking=shows_thinking)
    anthropic_types.validate("Message", orjson.dumps(body), beta=uses_mcp)
    assert joined(events) == json.loads(orjson.dumps(body))


@given(
    speech=speeches(),
    stop=st.sampled_from([None, "zz"]),
    excess=st.sampled_from([None, 'web_search {"query":"a"}', 'web_search {"query":1e400}', "web_search {", "demo__look {}"]),
)
def test_joined_events_are_the_message(speech: tuple[list[Delta], str], stop: str | None, excess: str | None) -> None:
    log, _ = write_response(*speech)
    if excess is not None:
        log[-1]["response"]["output_problems"] = [{"type": CALL_LIMIT_REACHED, "message": "", "text": excess}]
    if stop is not None and log[-1]["response"]["status"] == "completed":
        log[-1]["response"]["stop_sequence"] = stop
    for shows_thinking in (True, False):
        check(log, shows_thinking=shows_thinking)


@given(both=parallel_speeches())
def test_results_in_any_order_leave_the_blocks_in_the_order_of_the_items(both: tuple[list[Delta], list[Delta]]) -> None:
    log, _ = write_response(both[1])
    check(log, shows_thinking=True)
