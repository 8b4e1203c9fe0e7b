"""From tokens to events: the writer accepts all parsed deltas, and the validator finds no violation."""

from __future__ import annotations

from functools import cache

import pytest

from responses_app.dialects.base import Dialect, OutputParser
from responses_app.engine_interface import Chunk
from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import Delta
from responses_app.protocol.events import Event
from responses_app.protocol.reducer import fold
from tests.support.dialects import chat_tapes, harmony_tapes
from tests.support.dialects.parser_driver import byte_vocabulary, chat, harmony, harmony_tokens, turn
from tests.support.protocol.response_strategies import items, write_response

STREAMS = [("harmony", tape) for tape in harmony_tapes.TAPES] + [("chat", tape) for tape in chat_tapes.TAPES]
WHOLE = 100_000


@cache
def pieces(name: str, tape: str, size: int) -> list[Delta]:
    dialect: Dialect = harmony() if name == "harmony" else chat()
    tokens = (
        harmony_tokens(harmony_tapes.TAPES[tape][0])
        if name == "harmony"
        else byte_vocabulary().encode(chat_tapes.TAPES[tape][0])
    )
    parser: OutputParser = dialect.parser_for(turn())
    parsed = [piece for at in range(0, len(tokens), size) for piece in parser.feed(Chunk(tokens[at : at + size]))]
    return parsed + parser.finish()


@cache
def stream(name: str, tape: str, size: int) -> list[Event]:
    ending = "cut" if tape in chat_tapes.CUT else "complete"
    return write_response(pieces(name, tape, size), ending)[0]


@pytest.mark.parametrize("size", [1, WHOLE])
@pytest.mark.parametrize(("name", "tape"), STREAMS)
def test_the_stream_is_clean_and_folds_to_the_final_object(name: str, tape: str, size: int) -> None:
    events = stream(name, tape, size)
    assert validate(events) == []
    assert fold(events) == events[-1]["response"]


@pytest.mark.parametrize(("name", "tape"), STREAMS)
def test_e3_the_items_do_not_depend_on_the_grouping(name: str, tape: str) -> None:
    by_one, at_once = (items(stream(name, tape, size)) for size in (1, WHOLE))
    assert _unnamed(by_one) == _unnamed(at_once)
    assert by_one


def test_c12_text_and_calls_of_one_turn_are_items_of_their_own_in_their_order() -> None:
    events, _ = write_response(pieces("chat", "text_before_and_after_a_call", 1))
    assert [item["type"] for item in items(events)] == ["message", "function_call", "message"]


def test_reasoning_and_two_calls_are_three_items() -> None:
    events, _ = write_response(pieces("chat", "two_calls", 1))
    assert [item["type"] for item in items(events)] == ["reasoning", "function_call", "function_call"]


def test_f5_channels_are_items_with_their_phases() -> None:
    events, _ = write_response(pieces("harmony", "two_calls_in_one_turn", 1))
    kinds = [(item["type"], item.get("phase")) for item in items(events)]
    assert kinds == [("reasoning", None), ("message", "commentary"), ("function_call", None), ("function_call", None)]


def test_cut_item_is_incomplete_and_finished_item_is_complete() -> None:
    events, _ = write_response(pieces("chat", "in_the_arguments", 1), "cut")
    assert [item["status"] for item in items(events)] == ["incomplete"]
    events, _ = write_response(pieces("chat", "behind_the_end_mark", 1), "cut")
    assert [item["status"] for item in items(events)] == ["completed"]


def _unnamed(output: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{key: value for key, value in item.items() if key not in ("id", "call_id")} for item in output]
