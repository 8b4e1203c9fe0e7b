"""Custom tools and namespaces: presented as functions, and mapped back for every grouping of tokens."""

from __future__ import annotations

import itertools
import json
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.base import Turn
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, Delta, EndItem, TextDelta
from responses_app.tools.functions.as_functions import ToolOrigin, map_tool_calls, to_functions
from tests.support.dialects.call_events import ScriptedParser

EXEC = {"type": "custom", "name": "exec", "description": "Runs code", "format": {"type": "text"}}
ADD = {"type": "function", "name": "add", "parameters": {"type": "object"}}
CUSTOM = {"exec": ToolOrigin("exec", "custom")}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def text_of(arguments: str, cuts: list[int] | None = None, *, ended: bool = True) -> str:
    """Return the input of a custom tool call with the given arguments, cut at the given positions."""
    places = sorted({0, len(arguments), *(cut % (len(arguments) + 1) for cut in cuts or [])})
    parts = [Arguments(arguments[a:b]) for a, b in itertools.pairwise(places)]
    pieces: list[Delta] = [Call("exec"), *parts, *([EndItem()] if ended else [])]
    parser = map_tool_calls(ScriptedParser(pieces), CUSTOM)
    deltas = [piece for _ in pieces for piece in parser.feed(Chunk())] + parser.finish()
    assert deltas[0] == Call("exec", "custom")
    assert not ended or deltas[-1] == EndItem()
    return "".join(piece.text for piece in deltas if isinstance(piece, Arguments))


@given(ANY_TEXT, st.booleans(), st.lists(st.integers(0, 400), max_size=8))
def test_the_text_comes_out_whole_whatever_the_cuts(text: str, ascii_only: bool, cuts: list[int]) -> None:
    assert text_of(json.dumps({"input": text}, ensure_ascii=ascii_only), cuts) == text
    assert text_of(json.dumps({"input": text}, ensure_ascii=ascii_only, indent=2), cuts) == text


@given(ANY_TEXT, st.integers(0, 400), st.lists(st.integers(0, 400), max_size=4))
def test_cut_call_yields_the_beginning_of_its_text(text: str, end: int, cuts: list[int]) -> None:
    whole = json.dumps({"input": text})
    assert text.startswith(text_of(whole[: end % len(whole)], cuts, ended=False))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("print(1)", "print(1)"),
        ('{"code": "x"}', '{"code": "x"}'),
        ('{"inp', '{"inp'),
        ("", ""),
        (r'{"input": "a\x"}', r"a\x"),
        (r'{"input": "a\ud83d!"}', "a\ufffd!"),
        (r'{"input": "a\ud83d\n!"}', "a\ufffd\n!"),
        (r'{"input": "a\udc00"}', "a\ufffd"),
        (r'{"input": "a\ud83d\u\ude00"}', "a\ufffd\\u\ufffd"),
        ('{"input": "two\nlines"}', "two\nlines"),
        ('{"input": "x"} and more', "x"),
    ],
)
def test_unexpected_wrapping_loses_no_input(arguments: str, text: str) -> None:
    assert text_of(arguments) == text
    assert text_of(arguments, list(range(len(arguments)))) == text


def test_other_calls_and_texts_pass_as_they_are() -> None:
    pieces: list[Delta] = [TextDelta("Well."), EndItem(), Call("add"), Arguments('{"input": "x"}'), EndItem()]
    parser = map_tool_calls(ScriptedParser(pieces), CUSTOM)
    assert [piece for _ in pieces for piece in parser.feed(Chunk())] == pieces
    parser = ScriptedParser([])
    assert map_tool_calls(parser, {}) is parser


def test_turn_is_converted_to_functions() -> None:
    call = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "exec", "input": 'say "hi"\n'}
    output = {"type": "custom_tool_call_output", "id": "ctco_1", "call_id": "c", "output": "hi"}
    turn = Turn([call, output], date(2026, 1, 1), tools=[EXEC, ADD], tool_choice={"type": "custom", "name": "exec"})
    converted, origins = to_functions(turn)
    assert origins == CUSTOM
    assert [item["type"] for item in converted.items] == ["function_call", "function_call_output"]
    assert json.loads(converted.items[0]["arguments"]) == {"input": 'say "hi"\n'}
    assert [tool["type"] for tool in converted.tools] == ["function", "function"]
    assert converted.tool_choice == {"type": "function", "name": "exec"}
    allowed = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "custom", "name": "exec"}]}
    chosen = to_functions(Turn([], date(2026, 1, 1), tools=[EXEC], tool_choice=allowed))[0].tool_choice
    assert isinstance(chosen, dict)
    assert chosen["tools"] == [{"type": "function", "name": "exec"}]


def test_a_turn_without_any_is_the_same_turn() -> None:
    turn = Turn([], date(2026, 1, 1), tools=[ADD])
    assert to_functions(turn) == (turn, {})
    assert to_functions(turn)[0] is turn


def test_tools_of_a_namespace_have_both_names_and_come_back_with_each() -> None:
    crm = {"type": "namespace", "name": "crm", "description": "Customers", "tools": [ADD, EXEC]}
    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "add", "namespace": "crm", "arguments": "{}"}
    turn, origins = to_functions(Turn([call], date(2026, 1, 1), tools=[ADD, crm]))
    assert [tool["name"] for tool in turn.tools] == ["add", "crm__add", "crm__exec"]
    assert {tool["type"] for tool in turn.tools} == {"function"}
    assert turn.items[0]["name"] == "crm__add"
    assert "namespace" not in turn.items[0]
    assert origins == {"crm__add": ToolOrigin("add", "function", "crm"), "crm__exec": ToolOrigin("exec", "custom", "crm")}
    pieces: list[Delta] = [
        Call("crm__add"),
        Arguments("{}"),
        EndItem(),
        Call("crm__exec"),
        Arguments('{"input": "x"}'),
        EndItem(),
        Call("add"),
    ]
    parser = map_tool_calls(ScriptedParser(pieces), origins)
    deltas = [piece for _ in pieces for piece in parser.feed(Chunk())]
    calls = [piece for piece in deltas if isinstance(piece, Call)]
    assert calls == [Call("add", "function", "crm"), Call("exec", "custom", "crm"), Call("add")]
    assert [piece.text for piece in deltas if isinstance(piece, Arguments)] == ["{}", "x"]


def test_namespace_functions_adds_no_prefix() -> None:
    """Harmony puts every tool into a namespace `functions`; calls keep it."""
    space = {"type": "namespace", "name": "functions", "description": "", "tools": [EXEC]}
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c", "name": "exec", "namespace": "functions", "input": "x"}
    turn, origins = to_functions(Turn([item], date(2026, 1, 1), tools=[space]))
    assert ([tool["name"] for tool in turn.tools], turn.items[0]["name"]) == (["exec"], "exec")
    assert origins == {"exec": ToolOrigin("exec", "custom", "functions")}


def test_tools_of_an_item_are_offered_and_the_item_is_dropped() -> None:
    added = {"type": "additional_tools", "id": "at_1", "role": "developer", "tools": [EXEC]}
    turn, origins = to_functions(Turn([added], date(2026, 1, 1), tools=[ADD]))
    assert list(turn.items) == []
    assert [tool["name"] for tool in turn.tools] == ["add", "exec"]
    assert origins == CUSTOM
