"""Conversion of the deltas of a scripted vLLM parser, without loading vLLM."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from responses_app.dialects.vllm.adapters import ITEM_END, Delta
from responses_app.dialects.vllm.parser import VllmOutputParser
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, ReasoningDelta, TextDelta
from responses_app.protocol.deltas import Delta as Delta_
from tests.support.dialects.parser_driver import END, byte_vocabulary, joined


class ScriptedVllmParser:
    """Parser that returns scripted deltas for each token, or raises scripted exceptions."""

    reasoning_tokens = 0

    def __init__(self, script: dict[str, list[Any]]) -> None:
        self._script = script

    def feed(self, text: str, token: int) -> Iterator[Delta]:
        yield from self._emit(text)

    def finish(self, *, cut: bool) -> Iterator[Delta]:
        del cut
        yield from self._emit("end")

    def _emit(self, word: str) -> Iterator[Delta]:
        for delta in self._script.get(word, []):
            if isinstance(delta, Exception):
                raise delta
            yield delta


def text(content: str) -> Delta:
    return SimpleNamespace(reasoning=None, content=content, tool_calls=None)


def reasoning(text: str) -> Delta:
    return SimpleNamespace(reasoning=text, content=None, tool_calls=None)


def call(index: int, name: str | None, arguments: str) -> Delta:
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(reasoning=None, content=None, tool_calls=[SimpleNamespace(index=index, function=function)])


def parse_script(script: dict[str, list[Any]], tokens: str = "abc<|im_end|>", **how: Any) -> list[Delta_]:
    vocabulary = byte_vocabulary()
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    parser = VllmOutputParser(vocabulary, [stop], ScriptedVllmParser(script), lambda name: name != "forbidden", **how)
    pieces = parser.feed(Chunk(vocabulary.encode(tokens)))
    return joined([*pieces, *parser.finish()])


@pytest.mark.parametrize("tokens", ["abc<|im_end|>", "abc"])
def test_f4_a_parser_that_fails_at_the_end_takes_nothing_with_it(tokens: str) -> None:
    deltas = parse_script({"a": [text("Hello")], "end": [text("."), ValueError("no")]}, tokens)
    assert deltas == [TextDelta("Hello."), END] if "<" in tokens else [TextDelta("Hello.")]


def test_f4_behind_a_parser_that_fails_everything_is_text() -> None:
    assert parse_script({"a": [reasoning("Hm.")], "b": [ValueError("no")]}) == [
        ReasoningDelta("Hm."),
        END,
        TextDelta("bc"),
        END,
    ]


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ({"c": [ValueError("no")]}, [TextDelta("abc"), END]),
        ({"b": [text("a")], "c": [ValueError("no")]}, [TextDelta("abc"), END]),
        ({"end": [ValueError("no")]}, [TextDelta("abc"), END]),
        (
            {"b": [call(0, "a", "b"), ITEM_END], "end": [ValueError("no")]},
            [Call("a"), Arguments("b"), END, TextDelta("c"), END],
        ),
    ],
)
def test_text_that_a_failed_parser_holds_back_is_not_lost(script: dict[str, list[Any]], expected: list[Delta_]) -> None:
    assert parse_script(script) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"), [("abc<|im_end|>", [Call("b"), END]), ("abc", [Call("b")]), ("ab", [TextDelta("b")])]
)
def test_name_without_arguments_is_a_call_unless_cut_at_the_name(tokens: str, expected: list[Delta_]) -> None:
    assert parse_script({"b": [call(0, "b", "")]}, tokens) == expected


def test_e1_a_tail_without_a_name_is_no_call() -> None:
    assert parse_script({"a": [call(0, "f", "{}"), ITEM_END], "b": [call(1, None, "x")]}) == [
        Call("f"), Arguments("{}"), END, TextDelta("x"), END,
    ]  # fmt: skip


def test_delta_with_all_fields_is_parsed_in_order() -> None:
    everything = call(0, "f", "{}")
    everything.reasoning, everything.content = "Hm.", "I look."
    assert parse_script({"a": [everything]}) == [
        ReasoningDelta("Hm."),
        END,
        TextDelta("I look."),
        END,
        Call("f"),
        Arguments("{}"),
        END,
    ]


def test_a7_white_space_around_calls_is_no_message() -> None:
    script = {
        "a": [reasoning("Hm.\n"), ITEM_END, text("\n\n")],
        "b": [call(0, "f", "{}"), ITEM_END, text("\n")],
        "c": [text("Done.")],
    }
    assert parse_script(script) == [ReasoningDelta("Hm."), END, Call("f"), Arguments("{}"), END, TextDelta("Done."), END]


def test_a_call_that_is_not_allowed_is_text() -> None:
    assert parse_script({"a": [call(0, "forbidden", "{}"), ITEM_END]}) == [TextDelta("{}"), END]


def test_half_a_character_before_the_end_of_the_turn_is_not_lost() -> None:
    squid, stop = byte_vocabulary().encode("🦑"), byte_vocabulary().id("<|im_end|>")
    assert stop is not None
    parser = VllmOutputParser(byte_vocabulary(), [stop], ScriptedVllmParser({}), lambda name: True)
    assert joined(parser.feed(Chunk([*squid[:2], stop]))) == [TextDelta("\ufffd"), END]
