"""Parsing of the output of a chat model with <think> reasoning and Hermes calls."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Arguments, Call, ReasoningDelta, TextDelta
from tests.support.dialects.chat_tapes import CUT, HM, IN_ORDER, IN_OSLO, MALFORMED, OSLO, ROM, TAPES, THINK
from tests.support.dialects.parser_driver import (
    CHATML,
    CLOCK,
    END,
    OPENING,
    WEATHER,
    byte_vocabulary,
    chat,
    demo_vocabulary,
    parse_chunks,
    sizes,
    turn,
    user,
)
from tests.support.hypothesis_profile import examples

TO = turn()  # rendered once


@pytest.mark.parametrize("tape", IN_ORDER)
def test_tape_is_parsed_in_order(tape: str) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", MALFORMED)
def test_malformed_calls_are_neither_lost_nor_raised_nor_shown_with_their_marks(tape: str) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", CUT)
def test_cut_output_leaves_its_item_open(tape: str) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", [tape for tape in IN_ORDER if tape not in ("umlauts_and_squids",)])
def test_single_token_markers_are_parsed_alike(tape: str) -> None:
    text, expected = TAPES[tape]
    vocabulary = demo_vocabulary()
    assert parse_chunks(chat(vocabulary=vocabulary), turn(), vocabulary.encode(text)) == expected


def test_a_name_nested_without_end_is_text() -> None:
    deep = '{"name": ' + "[" * 2000 + "]" * 2000 + "}"
    assert parse_chunks(chat(), turn(), byte_vocabulary().encode(f"<tool_call>{deep}</tool_call>")) == [TextDelta(deep), END]


@pytest.mark.parametrize("mark", ["<think>", "</think>", "<tool_call>", "</tool_call>"])
@pytest.mark.parametrize("opened", [CHATML, OPENING])
def test_no_part_of_a_mark_leaks_wherever_the_cut_is(mark: str, opened: str) -> None:
    for size in range(1, len(mark)):
        parsed = parse_chunks(chat(opened), turn(), byte_vocabulary().encode("word " + mark[:size]))
        assert [piece.text for piece in parsed if isinstance(piece, TextDelta | ReasoningDelta)] == ["word"]


@given(st.sampled_from(sorted(TAPES)), sizes)
@settings(max_examples=examples(80))
def test_parsing_does_not_depend_on_the_grouping_of_tokens(tape: str, cuts: list[int]) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(chat(), TO, byte_vocabulary().encode(text), cuts) == expected


MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<", "</", "<tool", "<|im_end|>", "<|pad|>"]
JSON = ['{"name": "clock"', ', "arguments": ', '{"a": "b', '"}', "}", "]", "[", "{", '"', "\\", ":", ",", "null", OSLO]
SCRAPS = st.sampled_from([*MARKS, *JSON, "\n", " ", "a", "é🦑"])


@given(st.lists(SCRAPS, max_size=25).map("".join), sizes, st.sampled_from([byte_vocabulary, demo_vocabulary]))
@settings(max_examples=examples(150))
def test_parser_never_raises_and_ignores_grouping(
    text: str, cuts: list[int], vocabulary: Callable[[], TokenizerAdapter]
) -> None:
    dialect, tokens = chat(vocabulary=vocabulary()), vocabulary().encode(text)
    one_by_one = parse_chunks(dialect, TO, tokens, [1] * len(tokens))
    assert parse_chunks(dialect, TO, tokens) == parse_chunks(dialect, TO, tokens, cuts) == one_by_one
    assert not any(
        isinstance(piece, TextDelta) and ("<tool_call>" in piece.text or "<think>" in piece.text) for piece in one_by_one
    )


def test_e4_a_chunk_with_the_border_between_reasoning_and_text_is_split() -> None:
    parser, vocabulary = chat().parser_for(turn()), byte_vocabulary()
    parsed = parser.feed(Chunk(vocabulary.encode("<think>\nThe end")))
    parsed += parser.feed(Chunk(vocabulary.encode(".\n</think>\n\nHel")))
    assert parsed == [ReasoningDelta("The end"), ReasoningDelta("."), END, TextDelta("Hel")]


def test_a_name_comes_before_its_arguments_and_these_before_their_end() -> None:
    parser = chat().parser_for(turn())
    parsed = [parser.feed(Chunk([token])) for token in byte_vocabulary().encode(OSLO)]
    kinds = [type(piece) for pieces in parsed for piece in pieces]
    assert kinds[0] is Call
    assert kinds.count(Arguments) == len('{"city": "Oslo"}')


def test_a_prompt_that_opens_the_reasoning_is_noticed() -> None:
    tokens = byte_vocabulary().encode("Hm.\n</think>\n\nHello.<|im_end|>")
    assert parse_chunks(chat(OPENING), turn(tools=()), tokens) == [*HM, TextDelta("Hello."), END]


def test_a_prompt_that_closes_the_reasoning_is_noticed() -> None:
    tokens = byte_vocabulary().encode("Hello.<|im_end|>")
    assert parse_chunks(chat(always_thinks=True), turn(effort="none"), tokens) == [TextDelta("Hello."), END]


def test_missing_opening_marker_still_yields_reasoning() -> None:
    tokens = byte_vocabulary().encode("Hm.\n</think>\n\nHello.<|im_end|>")
    assert parse_chunks(chat(always_thinks=True), turn(), tokens) == [*HM, TextDelta("Hello."), END]


def test_words_of_the_user_do_not_open_the_reasoning() -> None:
    tokens = byte_vocabulary().encode("Hello.<|im_end|>")
    assert parse_chunks(chat(), turn(user("<think>")), tokens) == [TextDelta("Hello."), END]


def test_reasoning_tokens_are_those_between_the_marks() -> None:
    parser, vocabulary = chat(vocabulary=demo_vocabulary()).parser_for(turn()), demo_vocabulary()
    parser.feed(Chunk(vocabulary.encode("<think>\nHm.\n</think>\n\nHello there.<|im_end|>")))
    assert parser.reasoning_tokens == len(vocabulary.encode("\nHm.\n"))


def test_a_single_call_hides_what_follows() -> None:
    parser = chat().parser_for(turn(parallel_tool_calls=False))
    assert parser.feed(Chunk(byte_vocabulary().encode(THINK + OSLO + ROM + "more"))) == [*HM, *IN_OSLO]
    assert parser.done
    assert parser.finish() == []


def test_a_call_against_tool_choice_none_is_only_text() -> None:
    tokens = byte_vocabulary().encode(OSLO + "<|im_end|>")
    body = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    assert parse_chunks(chat(), turn(tool_choice="none"), tokens) == [TextDelta(body), END]


def test_a_call_outside_of_the_allowed_tools_is_only_text() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "clock"}]}
    parsed = parse_chunks(chat(), turn(tools=(WEATHER, CLOCK), tool_choice=choice), byte_vocabulary().encode(OSLO))
    assert not [piece for piece in parsed if isinstance(piece, Call)]


def test_incomplete_character_at_the_cut_is_dropped() -> None:
    tokens = byte_vocabulary().encode("a🦑")
    assert parse_chunks(chat(), turn(), tokens[:-1], [1] * 9) == [TextDelta("a")]


def test_broken_utf8_becomes_a_replacement_character_when_the_model_goes_on() -> None:
    vocabulary = byte_vocabulary()
    squid, stop = vocabulary.encode("🦑"), vocabulary.encode("<|im_end|>")
    assert parse_chunks(chat(), turn(), [*squid[:2], *vocabulary.encode("a"), *squid[:1], *stop]) == [
        TextDelta("\ufffda\ufffd"),
        END,
    ]


@pytest.mark.parametrize(("before", "dropped"), [("\n\n", ""), (" ", " "), ("", "")])
@pytest.mark.parametrize("after", ["", " \n\n"])
def test_log_probabilities_travel_with_the_text_of_their_tokens(before: str, dropped: str, after: str) -> None:
    """A token may begin with white space that is dropped, as ` you` behind a marker."""
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode(f"<think>\nHm.\n</think>{before}you are.{after}<|im_end|>")
    parser, texts = chat(vocabulary=vocabulary).parser_for(turn()), []
    for token in tokens:
        texts += [piece for piece in parser.feed(Chunk([token], [Logprob(token, -0.1)])) if isinstance(piece, TextDelta)]
    assert "".join(piece.text for piece in texts) == f"you are.{after}"
    assert "".join(entry["token"] for piece in texts for entry in piece.logprobs) == f"{dropped}you are.{after}"


def test_a_long_answer_costs_linear_time() -> None:
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode("The sun is warm. " * 2000 + "\n" * 2000 + "<" * 2000)
    parser = chat(vocabulary=vocabulary).parser_for(turn())
    assert sum(len(parser.feed(Chunk([token]))) for token in tokens) > 4000


@pytest.mark.parametrize("mark", ["<think>", "</think>", "<tool_call>", "</tool_call>"])
@pytest.mark.parametrize("before", ["", "<think>\nHm.\n</think>\n\n"])
def test_json_of_a_schema_may_contain_marks(mark: str, before: str) -> None:
    text, vocabulary = f'{{"a": "x{mark}y", "b": "{mark}"}}', demo_vocabulary()
    parsed = parse_chunks(
        chat(vocabulary=vocabulary), turn(format={"type": "json_object"}), vocabulary.encode(f"{before}{text}<|im_end|>")
    )
    assert [piece.text for piece in parsed if isinstance(piece, TextDelta)] == [text]


def test_call_in_place_of_json_is_a_call() -> None:
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode(f"<tool_call>\n{OSLO}\n</tool_call><|im_end|>")
    assert Call("get_weather") in parse_chunks(chat(vocabulary=vocabulary), turn(format={"type": "json_object"}), tokens)


@pytest.mark.parametrize("word", ["ha", "no no ", "sun is up. "])
def test_text_ends_at_its_last_allowed_repetition(word: str) -> None:
    vocabulary = byte_vocabulary()
    limited, tokens = turn(max_repetitions=5), vocabulary.encode("<think>" + "No" * 9 + "</think>So: " + word * 9)
    parser = chat(vocabulary=vocabulary).parser_for(limited)
    texts = [piece.text for token in tokens for piece in parser.feed(Chunk([token])) if isinstance(piece, TextDelta)]
    assert parser.done
    assert "".join(texts).count(word.strip()) <= 10
    assert parse_chunks(chat(vocabulary=vocabulary), limited, tokens)[-1] == END


@pytest.mark.parametrize("form", [{"type": "text"}, {"type": "json_object"}])
def test_repetitions_end_no_call_and_no_json(form: dict[str, str]) -> None:
    vocabulary = byte_vocabulary()
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "' + "ha" * 9 + '"}}\n</tool_call>'
    text = call if form["type"] == "text" else '{"a": "' + "ha" * 9 + '"}'
    parser = chat(vocabulary=vocabulary).parser_for(turn(format=form, max_repetitions=5))
    parser.feed(Chunk(vocabulary.encode(text)))
    assert not parser.done


@pytest.mark.parametrize("size", [1, 2, 3, 50])
def test_repetitions_end_a_text_at_the_same_token_in_any_grouping(size: int) -> None:
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode("<think>no" + " no" * 9 + "</think>So: the word and the word" + " word" * 9)
    parsed = parse_chunks(chat(vocabulary=vocabulary), turn(max_repetitions=5), tokens, [size] * (len(tokens) // size))
    assert parsed == [ReasoningDelta("no" + " no" * 9), END, TextDelta("So: the word and the word" + " word" * 4), END]


@given(st.text("a <t/>é漢\n", max_size=30), st.lists(st.integers(1, 4), max_size=30))
def test_plain_tokens_beside_beginnings_of_markers_give_the_same_deltas(text: str, cuts: list[int]) -> None:
    for vocabulary in (demo_vocabulary(), byte_vocabulary()):
        dialect, tokens = chat(vocabulary=vocabulary), vocabulary.encode(f"<think>a{text}</think>b{text}")
        assert parse_chunks(dialect, TO, tokens, cuts) == parse_chunks(dialect, TO, tokens)


@given(st.text('a "<\\\n{}]é漢', max_size=20), st.lists(st.integers(1, 4), max_size=40), st.booleans())
def test_strings_of_arguments_are_passed_on_in_any_grouping(text: str, cuts: list[int], raw: bool) -> None:
    """With `raw` the string is not escaped, so that it may end anywhere or hold line breaks."""
    arguments = f'{{"city": "{text}", "more": 1}}' if raw else json.dumps({"city": text, "more": 1}, ensure_ascii=False)
    output = f'<tool_call>\n{{"name": "get_weather", "arguments": {arguments}}}\n</tool_call>'
    for vocabulary in (demo_vocabulary(), byte_vocabulary()):
        dialect, tokens = chat(vocabulary=vocabulary), vocabulary.encode(output)
        parsed = parse_chunks(dialect, TO, tokens, cuts)
        assert parsed == parse_chunks(dialect, TO, tokens)
        assert raw or parsed == [Call("get_weather"), Arguments(arguments), END]
