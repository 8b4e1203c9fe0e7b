"""Output problems of the parsers: a table of outputs, and none for well-formed outputs."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import output_format
from responses_app.dialects.stop_sequences import with_stop_sequences
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Call, Delta, OutputProblem, TextDelta
from tests.support.dialects import chat_tapes, harmony_tapes
from tests.support.dialects.call_events import ScriptedParser
from tests.support.dialects.call_texts import CALL_TEXTS, OTHER_TEXTS, TOOLS
from tests.support.dialects.chat_tapes import OSLO
from tests.support.dialects.harmony_tapes import CALLING, FINAL
from tests.support.dialects.parser_driver import (
    CHATML,
    byte_vocabulary,
    chat,
    harmony,
    harmony_tokens,
    parse_chunks,
    problems_of,
    sizes,
    turn,
)

pytestmark = pytest.mark.slow

STOP = byte_vocabulary().encode("<|im_end|>")
# The first two bytes of a character of four bytes, as tokens.
HALF_HARMONY, HALF_CHAT = [172, 253], byte_vocabulary().encode("🦑")[:2]

HARMONY: dict[str, tuple[list[int], list[tuple[str, str]]]] = {
    "unknown_channel": (harmony_tokens("<|channel|>musings<|message|>hm<|end|>"), [("unknown_channel", "musings")]),
    "unknown_recipient": (
        harmony_tokens("<|channel|>commentary to=browser.search<|message|>cats<|call|>"),
        [("unknown_recipient", "browser.search")],
    ),
    "call_without_name": (
        harmony_tokens("<|channel|>commentary to=functions.<|message|>x<|end|>"),
        [("call_without_name", "functions.")],
    ),
    "words_in_header": (
        harmony_tokens("<|channel|>final well <|message|>ok<|return|>"),
        [("malformed_header", "<|channel|>final well")],
    ),
    "foreign_role": (harmony_tokens("<|start|>user<|message|>me<|end|>"), [("malformed_header", "user")]),
    "header_without_message": (harmony_tokens("<|channel|>final<|end|>"), [("malformed_header", "<|channel|>final")]),
    "cut_in_header": (harmony_tokens("<|channel|>final"), [("unfinished_marker", "<|channel|>final")]),
    "cut_in_call": (harmony_tokens(CALLING + '{"ci'), [("unfinished_call", "")]),
    "text_behind_arguments": (harmony_tokens(CALLING + '{"city": "Oslo"} please<|call|>'), [("text_in_call", "")]),
    "half_character": ([*harmony_tokens(FINAL + "a"), *HALF_HARMONY, *harmony_tokens("b<|return|>")], [("invalid_utf8", "")]),
    "half_character_at_end": (
        [*harmony_tokens(FINAL + "a"), *HALF_HARMONY, *harmony_tokens("<|return|>")],
        [("invalid_utf8", "")],
    ),
    "half_character_at_cut": ([*harmony_tokens(FINAL + "a"), *HALF_HARMONY], [("invalid_utf8", "")]),
    "replacement_character": (harmony_tokens(FINAL + "a\ufffdb<|return|>"), []),
}
CHAT: dict[str, tuple[list[int], list[tuple[str, str]]]] = {
    "call_without_name": (byte_vocabulary().encode('<tool_call>{"arguments": {}}'), [("call_without_name", "")]),
    "invalid_name": (byte_vocabulary().encode('<tool_call>{"name": "a b", "arguments": {}}'), [("call_without_name", "")]),
    "text_in_call": (byte_vocabulary().encode("<tool_call>sorry, no"), [("text_in_call", "")]),
    "text_behind_call": (byte_vocabulary().encode(OSLO.replace("}}\n", "}} please")), [("text_in_call", "")]),
    "unknown_key": (byte_vocabulary().encode('<tool_call>{"name": "clock", "x": 1}</tool_call>'), [("text_in_call", "")]),
    "stop_in_call": ([*byte_vocabulary().encode(OSLO[:-20]), *STOP], [("unfinished_call", "")]),
    "stop_before_name": ([*byte_vocabulary().encode('<tool_call>{"name": "ge'), *STOP], [("unfinished_call", "")]),
    "cut_before_name": (byte_vocabulary().encode('<tool_call>{"name": "ge'), [("unfinished_call", '{"name": "ge')]),
    "cut_in_call": (byte_vocabulary().encode(OSLO[:-20]), [("unfinished_call", "")]),
    "cut_in_marker": (byte_vocabulary().encode("a <tool_c"), [("unfinished_marker", "<tool_c")]),
    "cut_in_end_marker": (byte_vocabulary().encode(OSLO[:-4]), [("unfinished_marker", "</tool_c")]),
    "closing_marker": (byte_vocabulary().encode("a</think>b"), [("unexpected_marker", "</think>")]),
    # So some models write that they do not reason.
    "closing_marker_alone": (byte_vocabulary().encode("\n</think>\n\nb"), []),
    "closing_marker_twice": (byte_vocabulary().encode("</think></think>b"), [("unexpected_marker", "</think>")]),
    "closing_marker_behind_reasoning": (
        byte_vocabulary().encode("<think>a</think></think>b"),
        [("unexpected_marker", "</think>")],
    ),
    "half_character": ([*HALF_CHAT, *byte_vocabulary().encode("b")], [("invalid_utf8", "")]),
    "half_character_at_end": ([*HALF_CHAT, *STOP], [("invalid_utf8", "")]),
    "half_character_at_cut": (HALF_CHAT, [("invalid_utf8", "")]),
    "replacement_character": (byte_vocabulary().encode("a\ufffdb"), []),
}
WELL_FORMED = {
    **{name: (name, texts) for name, texts in CALL_TEXTS.items()},
    **OTHER_TEXTS,
}


@cache
def open_format(parser: str) -> ChatDialect:
    output = output_format(None, parser)
    assert output is not None
    return ChatDialect(byte_vocabulary(), ChatTemplate(CHATML), STOP, output)


@pytest.mark.parametrize(("tokens", "expected"), HARMONY.values(), ids=HARMONY)
def test_problems_of_harmony_output(tokens: list[int], expected: list[tuple[str, str]]) -> None:
    assert problems_of(parse_chunks(harmony(), turn(), tokens, problems=True)) == expected


@pytest.mark.parametrize(("tokens", "expected"), CHAT.values(), ids=CHAT)
def test_problems_of_chat_output(tokens: list[int], expected: list[tuple[str, str]]) -> None:
    assert problems_of(parse_chunks(chat(), turn(), tokens, problems=True)) == expected


def test_call_of_tool_that_is_not_allowed_is_problem_in_chat_output() -> None:
    parsed = parse_chunks(chat(), turn(tool_choice="none"), byte_vocabulary().encode(OSLO), problems=True)
    assert ("tool_not_allowed", "") in problems_of(parsed)
    assert not any(isinstance(delta, Call) for delta in parsed)


def test_call_of_tool_that_is_not_allowed_is_problem_in_harmony_output() -> None:
    tokens = harmony_tokens(CALLING + "{}<|call|>")
    parsed = parse_chunks(harmony(), turn(tool_choice="none"), tokens, problems=True)
    assert problems_of(parsed) == [("tool_not_allowed", "get_weather")]


@pytest.mark.parametrize("text", [text for text, _ in harmony_tapes.WELL_FORMED.values()], ids=harmony_tapes.WELL_FORMED)
def test_well_formed_harmony_output_has_no_problem(text: str) -> None:
    assert problems_of(parse_chunks(harmony(), turn(), harmony_tokens(text), problems=True)) == []


@pytest.mark.parametrize("name", sorted(set(chat_tapes.IN_ORDER) - {"other_keys"}))
def test_well_formed_chat_output_has_no_problem(name: str) -> None:
    tokens = byte_vocabulary().encode(chat_tapes.IN_ORDER[name][0])
    assert problems_of(parse_chunks(chat(), turn(), tokens, problems=True)) == []


@pytest.mark.parametrize("name", WELL_FORMED)
@pytest.mark.parametrize("kind", ["one", "two", "empty", "typed"])
@pytest.mark.parametrize("around", [("", ""), ("I look.\n", "\nDone.")], ids=["alone", "in_text"])
def test_well_formed_calls_have_no_problem(name: str, kind: str, around: tuple[str, str]) -> None:
    parser, texts = WELL_FORMED[name]
    tokens = [*byte_vocabulary().encode(getattr(texts, kind).join(around)), *STOP]
    assert problems_of(parse_chunks(open_format(parser), turn(tools=TOOLS), tokens, problems=True)) == []


@pytest.mark.parametrize("text", [text for text, _ in chat_tapes.TAPES.values()], ids=chat_tapes.TAPES)
@given(sizes)
def test_grouping_of_tokens_changes_no_problem_of_chat_output(text: str, cuts: list[int]) -> None:
    tokens = byte_vocabulary().encode(text)
    assert parse_chunks(chat(), turn(), tokens, problems=True) == parse_chunks(chat(), turn(), tokens, cuts, problems=True)


@pytest.mark.parametrize("text", [text for text, _ in harmony_tapes.TAPES.values()], ids=harmony_tapes.TAPES)
@given(sizes)
def test_grouping_of_tokens_changes_no_problem_of_harmony_output(text: str, cuts: list[int]) -> None:
    tokens = harmony_tokens(text)
    parsed = parse_chunks(harmony(), turn(), tokens, problems=True)
    assert parsed == parse_chunks(harmony(), turn(), tokens, cuts, problems=True)


@given(st.lists(st.integers(1, 3), max_size=6))
def test_problem_between_texts_changes_no_stop_sequence(cuts: list[int]) -> None:
    problem = OutputProblem("invalid_utf8")
    deltas: list[Delta] = [TextDelta("a EN"), problem, TextDelta("D b"), OutputProblem("text_in_call")]
    parser, deltas_read = with_stop_sequences(ScriptedParser(deltas), ["END"]), list[Delta]()
    for _ in cuts:
        deltas_read += parser.feed(Chunk([0]))
    deltas_read += parser.finish()
    assert "".join(delta.text for delta in deltas_read if isinstance(delta, TextDelta)) == "a "
    assert OutputProblem("text_in_call") not in deltas_read
