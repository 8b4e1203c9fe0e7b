"""Parsing of harmony tokens: well formed, cut, bundled and malformed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai_harmony import StreamableParser

from responses_app.dialects.harmony.parser import MAX_HEADER
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Arguments, Call, ReasoningDelta, TextDelta
from tests.support.dialects.harmony_tapes import ANALYSIS, CALLING, FINAL, MALFORMED, NEXT, TAPES, WELL_FORMED, final, preamble
from tests.support.dialects.parser_driver import END, call, harmony, harmony_tokens, joined, parse_chunks, sizes, turn
from tests.support.hypothesis_profile import examples


@pytest.mark.parametrize("tape", WELL_FORMED)
def test_tape_is_parsed_in_order(tape: str) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(harmony(), turn(), harmony_tokens(text)) == expected


@pytest.mark.parametrize("tape", MALFORMED)
def test_f4_it_saves_the_text_of_malformed_messages(tape: str) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(harmony(), turn(), harmony_tokens(text)) == expected


@given(st.sampled_from(sorted(TAPES)), sizes)
@settings(max_examples=examples(60))
def test_parsing_does_not_depend_on_the_grouping_of_tokens(tape: str, cuts: list[int]) -> None:
    text, expected = TAPES[tape]
    assert parse_chunks(harmony(), turn(), harmony_tokens(text), cuts) == expected


FRAME = harmony_tokens("<|start|><|channel|><|message|><|end|><|call|><|return|><|constrain|>")
WORDS = harmony_tokens('assistant analysis commentary final to=functions.get_weather json {"a": 1}\n é🦑')
ODDITIES = [199999, 200018, 201087, 250000, 172, 253, 99, 239]
ANY_TOKEN = st.sampled_from([*FRAME, *WORDS, *ODDITIES])


@given(st.lists(ANY_TOKEN, max_size=60), sizes)
@settings(max_examples=examples(60))
def test_parser_takes_any_tokens_in_any_grouping(tokens: list[int], cuts: list[int]) -> None:
    assert parse_chunks(harmony(), turn(), tokens) == parse_chunks(harmony(), turn(), tokens, cuts)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), sizes)
@settings(max_examples=30)
def test_no_text_of_a_message_is_lost(text: str, cuts: list[int]) -> None:
    tokens = harmony_tokens(FINAL) + harmony().encoding.encode(text, disallowed_special=()) + harmony_tokens("<|return|>")
    assert parse_chunks(harmony(), turn(), tokens, cuts) == ([] if text.isspace() else [final(text), END])


def test_e1_one_burst_may_hold_the_whole_turn() -> None:
    text, expected = TAPES["two_calls_in_one_turn"]
    parser = harmony().parser_for(turn())
    assert parser.feed(Chunk(harmony_tokens(text))) == expected
    assert parser.finish() == []


def test_e6_a_character_that_is_cut_by_tokens_comes_whole() -> None:
    parser, squid = harmony().parser_for(turn()), [172, 253, 99, 239]
    parser.feed(Chunk(harmony_tokens(FINAL)))
    assert [parser.feed(Chunk([token])) for token in squid] == [[], [], [], [final("🦑")]]


def test_broken_utf8_becomes_a_replacement_character_when_the_message_ends() -> None:
    assert parse_chunks(harmony(), turn(), [*harmony_tokens(FINAL + "a"), 172, 253, *harmony_tokens("<|return|>")]) == [
        final("a\ufffd"),
        END,
    ]


def test_text_behind_broken_utf8_is_not_lost() -> None:
    assert parse_chunks(harmony(), turn(), [*harmony_tokens(FINAL), 172, 64, *harmony_tokens("<|return|>")]) == [
        final("\ufffda"),
        END,
    ]


def test_incomplete_character_at_the_cut_is_dropped() -> None:
    assert parse_chunks(harmony(), turn(), [*harmony_tokens(FINAL + "a"), 172, 253]) == [final("a")]


def test_a7_a_message_of_nothing_but_white_space_is_none() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(ANALYSIS + "\n\n" + NEXT + CALLING + "{}<|call|>")) == call("{}")


def test_white_space_at_the_start_of_a_real_message_stays() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(FINAL + "  indented<|return|>")) == [final("  indented"), END]


def test_a_turn_cut_in_its_reasoning_keeps_that_open() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(ANALYSIS + "Hm")) == [ReasoningDelta("Hm")]


def test_words_of_the_user_that_sound_like_a_type_stay_words() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(" json is a format")) == [final("json is a format")]


@pytest.mark.parametrize(
    "header",
    ["<|channel|>", "<|channel|>comm", "<|channel|>commentary to", CALLING[: -len("<|message|>")], " to=functions.get_w"],
)
def test_cut_header_yields_no_delta(header: str) -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(ANALYSIS + "Hm." + NEXT + header)) == [ReasoningDelta("Hm."), END]


def test_a_cut_text_without_a_header_keeps_its_last_word() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens("I want to")) == [final("I want to")]


def test_a_cut_call_keeps_its_item_open() -> None:
    assert parse_chunks(harmony(), turn(), harmony_tokens(CALLING + '{"city": "Par')) == [
        Call("get_weather"),
        Arguments('{"city": "Par'),
    ]


def test_text_without_header_is_emitted_before_the_end() -> None:
    parser = harmony().parser_for(turn())
    parsed = joined(parser.feed(Chunk(harmony_tokens("word " * (MAX_HEADER + 1)))))
    assert isinstance(parsed[0], TextDelta)
    assert parsed[0].text.startswith("word word")


def test_reasoning_tokens_are_those_of_the_analysis() -> None:
    parser, analysis = harmony().parser_for(turn()), harmony_tokens("one two three")
    parser.feed(Chunk(harmony_tokens(ANALYSIS) + analysis + harmony_tokens(NEXT + FINAL + "four five<|return|>")))
    assert parser.reasoning_tokens == len(analysis) == 3


def test_a_single_call_hides_what_follows() -> None:
    parser = harmony().parser_for(turn(parallel_tool_calls=False))
    parsed = parser.feed(Chunk(harmony_tokens(ANALYSIS + "Hm." + NEXT + CALLING + "{}" + NEXT + CALLING + "{}<|call|>")))
    assert parsed == [ReasoningDelta("Hm."), END, *call("{}")]
    assert parser.done
    assert parser.feed(Chunk(harmony_tokens(FINAL + "more"))) == parser.finish() == []


def test_parallel_calls_are_not_done_after_the_first() -> None:
    parser = harmony().parser_for(turn())
    parser.feed(Chunk(harmony_tokens(CALLING + "{}<|end|>")))
    assert not parser.done


def test_a_tool_that_is_called_like_a_server_tool_is_called() -> None:
    python = {"type": "function", "name": "python", "parameters": {"type": "object"}}
    tokens = harmony_tokens("<|channel|>analysis to=python code<|message|>{}<|call|>")
    assert parse_chunks(harmony(), turn(tools=(python,)), tokens) == call("{}", "python")


def test_a_call_against_tool_choice_none_is_only_text() -> None:
    assert parse_chunks(harmony(), turn(tool_choice="none"), harmony_tokens(CALLING + "{}<|call|>")) == [preamble("{}"), END]


def test_log_probabilities_travel_with_the_text_of_their_tokens() -> None:
    header, words = harmony_tokens(FINAL), harmony_tokens("Hi there")
    chunk = Chunk([*header, *words], [Logprob(token, -0.5, ((token, -0.5), (0, -2.0))) for token in [*header, *words]])
    (parsed,) = harmony().parser_for(turn()).feed(chunk)
    assert isinstance(parsed, TextDelta)
    assert [entry["token"] for entry in parsed.logprobs] == ["Hi", " there"]
    assert parsed.logprobs[0] == {
        "token": "Hi", "logprob": -0.5, "bytes": [72, 105],
        "top_logprobs": [{"token": "Hi", "logprob": -0.5, "bytes": [72, 105]}, {"token": "!", "logprob": -2.0, "bytes": [33]}],
    }  # fmt: skip


PERSON = {"type": "json_schema", "name": "p", "schema": {"type": "object"}}


@given(sizes)
def test_a_special_token_inside_a_string_of_bound_json_is_its_text(cut: list[int]) -> None:
    """A grammar matches the token by its text and continues, so the message must not end and the arguments parse."""
    first_call = CALLING + '{"city": "a<|end|>b\\"<|start|>", "d": "<|message|>"}'
    tokens = harmony_tokens(first_call + NEXT + CALLING + '{"city": ""}<|call|>')
    parsed = parse_chunks(harmony(), turn(), tokens, cut)
    assert parsed == [*call('{"city": "a<|end|>b\\"<|start|>", "d": "<|message|>"}'), *call('{"city": ""}')]


def test_a_special_token_inside_a_string_of_a_bound_answer_is_its_text() -> None:
    tokens = harmony_tokens(ANALYSIS + '"' + NEXT + FINAL + '{"a": "b<|channel|>"}<|return|>')
    assert parse_chunks(harmony(), turn(format=PERSON), tokens) == [
        ReasoningDelta('"'),
        END,
        final('{"a": "b<|channel|>"}'),
        END,
    ]
    # This output is unconstrained: a quote does not open a JSON string.
    assert parse_chunks(harmony(), turn(), harmony_tokens(FINAL + 'a "b<|end|>')) == [final('a "b'), END]


@given(sizes)
def test_text_after_complete_arguments_is_no_argument(cut: list[int]) -> None:
    """Free text may follow a constrained object; the call is complete and no text is lost."""
    tokens = harmony_tokens(CALLING + '{"city": "a}"}elseif": "b"}' + NEXT + CALLING + "{} <|call|>")
    parsed = parse_chunks(harmony(), turn(), tokens, cut)
    assert parsed == [*call('{"city": "a}"}'), preamble('elseif": "b"}'), END, *call("{} ")]
    assert parse_chunks(harmony(), turn(parallel_tool_calls=False), tokens, cut) == call('{"city": "a}"}')


@pytest.mark.parametrize("name", ["dance", "get_weather"])
def test_a_token_that_stops_the_engine_ends_the_message_wherever_it_stands(name: str) -> None:
    tokens = harmony_tokens(CALLING.replace("get_weather", name) + '{"city": "a<|call|>')
    assert parse_chunks(harmony(), turn(), tokens) == call('{"city": "a', name)


def test_unconstrained_arguments_end_with_their_message() -> None:
    tokens = harmony_tokens(CALLING.replace("get_weather", "dance") + '{"city": "a' + NEXT + FINAL + "b<|return|>")
    assert parse_chunks(harmony(), turn(), tokens) == [*call('{"city": "a', "dance"), final("b"), END]


@given(
    st.lists(st.sampled_from([*harmony_tokens("Hé 漢字 🦑🦑 \ufffd ß"), 128, 233, 8364, 9552, 222]), min_size=1, max_size=12)
)
@settings(max_examples=examples(60))
def test_characters_in_any_pieces_are_those_of_the_library(tokens: list[int]) -> None:
    """Plain tokens pass the library by, also between tokens with parts of characters."""
    header, word = harmony_tokens("<|channel|>final<|message|>"), harmony_tokens("a")
    library = StreamableParser(harmony().encoding, None)
    for token in [*harmony_tokens("<|start|>assistant"), *header, *word, *tokens, *harmony_tokens("<|return|>")]:
        library.process(token)
    (part,) = library.messages[0].content
    (delta, *_) = parse_chunks(harmony(), turn(), [*header, *word, *tokens, *harmony_tokens("<|return|>")], [1] * 20)
    assert isinstance(delta, TextDelta)
    assert delta.text == part.text


@given(st.text('a "<\\{}]é漢\n', max_size=20), st.lists(st.integers(1, 4), max_size=40))
def test_strings_of_arguments_are_passed_on_in_any_grouping(text: str, cuts: list[int]) -> None:
    arguments = json.dumps({"city": text, "more": 1}, ensure_ascii=False)
    tokens = harmony_tokens(f"{CALLING}{arguments}<|call|>")
    assert parse_chunks(harmony(), turn(), tokens, cuts) == call(arguments)
