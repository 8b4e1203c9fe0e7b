"""What is said of the deltas of a parser of vLLM, whatever the parser does; the parser is scripted, vLLM is not loaded."""

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


class Scripted:
    """Says for each token what the script says, and raises what stands in it."""

    reasoning_tokens = 0

    def __init__(self, script: dict[str, list[Any]]) -> None:
        self._script = script

    def feed(self, text: str, token: int) -> Iterator[Delta]:
        yield from self._say(text)

    def finish(self) -> Iterator[Delta]:
        yield from self._say("end")

    def _say(self, word: str) -> Iterator[Delta]:
        for delta in self._script.get(word, []):
            if isinstance(delta, Exception):
                raise delta
            yield delta


def text(content: str) -> Delta:
    return SimpleNamespace(reasoning=None, content=content, tool_calls=None)


def thought(reasoning: str) -> Delta:
    return SimpleNamespace(reasoning=reasoning, content=None, tool_calls=None)


def call(index: int, name: str | None, arguments: str) -> Delta:
    function = SimpleNamespace(name=name, arguments=arguments)
    return SimpleNamespace(reasoning=None, content=None, tool_calls=[SimpleNamespace(index=index, function=function)])


def heard(script: dict[str, list[Any]], tokens: str = "abc<|im_end|>", **how: Any) -> list[Delta_]:
    vocabulary = byte_vocabulary()
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    listener = VllmOutputParser(vocabulary, [stop], Scripted(script), lambda name: name != "forbidden", **how)
    pieces = listener.feed(Chunk(vocabulary.encode(tokens)))
    return joined([*pieces, *listener.finish()])


@pytest.mark.parametrize("tokens", ["abc<|im_end|>", "abc"])
def test_f4_a_parser_that_fails_at_the_end_takes_nothing_with_it(tokens: str) -> None:
    said = heard({"a": [text("Hello")], "end": [text("."), ValueError("no")]}, tokens)
    assert said == [TextDelta("Hello."), END] if "<" in tokens else [TextDelta("Hello.")]


def test_f4_behind_a_parser_that_fails_everything_is_text() -> None:
    assert heard({"a": [thought("Hm.")], "b": [ValueError("no")]}) == [ReasoningDelta("Hm."), END, TextDelta("bc"), END]


def test_e1_a_tail_without_a_name_is_no_call() -> None:
    assert heard({"a": [call(0, "f", "{}"), ITEM_END], "b": [call(1, None, "x")]}) == [
        Call("f"), Arguments("{}"), END, TextDelta("x"), END,
    ]  # fmt: skip


def test_e1_one_delta_that_holds_everything_is_heard_in_its_order() -> None:
    everything = call(0, "f", "{}")
    everything.reasoning, everything.content = "Hm.", "I look."
    assert heard({"a": [everything]}) == [
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
        "a": [thought("Hm.\n"), ITEM_END, text("\n\n")],
        "b": [call(0, "f", "{}"), ITEM_END, text("\n")],
        "c": [text("Done.")],
    }
    assert heard(script) == [ReasoningDelta("Hm."), END, Call("f"), Arguments("{}"), END, TextDelta("Done."), END]


def test_a_call_that_is_not_allowed_is_text() -> None:
    assert heard({"a": [call(0, "forbidden", "{}"), ITEM_END]}) == [TextDelta("{}"), END]


def test_half_a_character_before_the_end_of_the_turn_is_not_lost() -> None:
    squid, stop = byte_vocabulary().encode("🦑"), byte_vocabulary().id("<|im_end|>")
    assert stop is not None
    listener = VllmOutputParser(byte_vocabulary(), [stop], Scripted({}), lambda name: True)
    assert joined(listener.feed(Chunk([*squid[:2], stop]))) == [TextDelta("\ufffd"), END]
