"""What is heard from a model that thinks in <think> and calls in Hermes format."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta
from tests.dialects.hearing import (
    CHATML,
    CLOCK,
    END,
    OPENING,
    WEATHER,
    byte_vocabulary,
    call,
    chat,
    demo_vocabulary,
    hear,
    sizes,
    turn,
    user,
)

OSLO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ROM = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rom"}}\n</tool_call>'
IN_OSLO, IN_ROM = call('{"city": "Oslo"}'), call('{"city": "Rom"}')
TO = turn()  # rendered once
THINK = "<think>\nHm.\n</think>\n\n"
HM: list[Delta] = [ReasoningDelta("Hm."), END]

IN_ORDER: dict[str, tuple[str, list[Delta]]] = {
    "text": ("Hello.<|im_end|>", [TextDelta("Hello."), END]),
    "thought_then_text": (THINK + "Hello.<|im_end|>", [*HM, TextDelta("Hello."), END]),
    "thought_then_call": (THINK + OSLO + "<|im_end|>", [*HM, *IN_OSLO]),
    "two_calls": (THINK + OSLO + "\n" + ROM + "<|im_end|>", [*HM, *IN_OSLO, *IN_ROM]),
    "two_calls_without_a_gap": (OSLO + ROM, [*IN_OSLO, *IN_ROM]),
    "text_before_and_after_a_call": (
        "I look.\n" + OSLO + "\nDone.<|im_end|>",
        [TextDelta("I look."), END, *IN_OSLO, TextDelta("Done."), END],
    ),
    "reasoning_after_text": (
        THINK + "One." + THINK + "Two.<|im_end|>",
        [*HM, TextDelta("One."), END, *HM, TextDelta("Two."), END],
    ),
    "reasoning_after_a_call": (OSLO + "\n" + THINK + ROM, [*IN_OSLO, *HM, *IN_ROM]),
    "call_inside_of_reasoning": (
        "<think>\na\n" + OSLO + "\nb\n</think>\nc<|im_end|>",
        [ReasoningDelta("a"), END, *IN_OSLO, ReasoningDelta("b"), END, TextDelta("c"), END],
    ),
    "empty_reasoning": ("<think>\n\n</think>\n\nHi<|im_end|>", [TextDelta("Hi"), END]),
    "a_single_less_than": ("a < b <tool<|im_end|>", [TextDelta("a < b <tool"), END]),
    "tags_of_others": ("<thin> <b>x</b> </tool_cal<|im_end|>", [TextDelta("<thin> <b>x</b> </tool_cal"), END]),
    "white_space_in_and_behind_a_text": ("a\n\n b \n<|im_end|>", [TextDelta("a\n\n b \n"), END]),
    "mark_inside_of_an_argument": (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "</tool_call>\\"<think>"}}\n</tool_call>x<|im_end|>',
        [*call('{"city": "</tool_call>\\"<think>"}'), TextDelta("x"), END],
    ),
    "arguments_before_the_name": ('<tool_call>{"arguments": {"city": "Oslo"}, "name": "get_weather"}</tool_call>', IN_OSLO),
    "arguments_in_a_string": (
        '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Oslo\\"}"}</tool_call>',
        IN_OSLO,
    ),
    "arguments_called_parameters": ('<tool_call>{"name": "get_weather", "parameters": {"city": "Oslo"}}</tool_call>', IN_OSLO),
    "no_arguments": ('<tool_call>{"name": "clock"}</tool_call>', call("", "clock")),
    "null_arguments": ('<tool_call>{"name": "clock", "arguments": null}</tool_call>', call("", "clock")),
    "other_keys": (
        '<tool_call>{"id": [{"}": 1}], "name": "clock", "arguments": {}, "x": -1.5}</tool_call>',
        call("{}", "clock"),
    ),
    "odd_spelling_stays": (
        '<tool_call>{"name":"get_weather","arguments":{ "city" :"\\u004fslo\\\\" , "n":[1,{"a":"]"}]} }</tool_call>',
        call('{ "city" :"\\u004fslo\\\\" , "n":[1,{"a":"]"}]}'),
    ),
    "a_name_that_no_tool_has": ('<tool_call>{"name": "dance", "arguments": {}}</tool_call>', call("{}", "dance")),
    "umlauts_and_squids": (THINK + "Grüße 🦑<|im_end|>", [*HM, TextDelta("Grüße 🦑"), END]),
}
MALFORMED: dict[str, tuple[str, list[Delta]]] = {
    "no_json": ("<tool_call>\nnot json\n</tool_call>\nafter<|im_end|>", [TextDelta("not json"), END, TextDelta("after"), END]),
    "no_name": (
        '<tool_call>{"arguments": {}}</tool_call>x<|im_end|>',
        [TextDelta('{"arguments": {}}'), END, TextDelta("x"), END],
    ),
    "name_that_is_a_number": (
        '<tool_call>{"name": 7, "arguments": {}}</tool_call>',
        [TextDelta('{"name": 7, "arguments": {}}'), END],
    ),
    "empty_call": ("a<tool_call></tool_call>b<|im_end|>", [TextDelta("a"), END, TextDelta("b"), END]),
    "ended_before_the_name": ('<tool_call>{"name": "get<|im_end|>', [TextDelta('{"name": "get'), END]),
    "one_brace_too_many": (OSLO.replace("}}", "}}}") + "\n" + ROM, [*IN_OSLO, *IN_ROM]),
    "no_end_mark": (OSLO.replace("\n</tool_call>", "") + ROM, [*IN_OSLO, *IN_ROM]),
    "no_end_mark_then_text": (OSLO.replace("</tool_call>", "") + "Done.<|im_end|>", [*IN_OSLO, TextDelta("Done."), END]),
    "two_objects_in_one_mark": (OSLO[:-12] + ROM[11:], [*IN_OSLO, *IN_ROM]),
    "a_list_of_calls": (
        '<tool_call>[{"name": "clock", "arguments": {}}, {"name": "clock", "arguments": {}}]</tool_call>',
        [*call("{}", "clock"), *call("{}", "clock")],
    ),
    "string_that_never_closes": (
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo}\n</tool_call>after<|im_end|>',
        [Call("get_weather"), Arguments('{"city": "Oslo}\n'), END, TextDelta("after"), END],
    ),
    "call_cut_by_the_next": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": <tool_call>{"name": "clock"}</tool_call>',
        [Call("get_weather"), Arguments('{"city": '), END, *call("", "clock")],
    ),
    "words_behind_the_object": (
        OSLO.replace("}}\n", "}} please") + "x<|im_end|>",
        [*IN_OSLO, TextDelta("please"), END, TextDelta("x"), END],
    ),
    "marks_that_close_nothing": ("a</think>b</tool_call>c<|im_end|>", [TextDelta("abc"), END]),
    "think_inside_of_think": ("<think>a<think>b</think>c<|im_end|>", [ReasoningDelta("ab"), END, TextDelta("c"), END]),
    "hidden_special_tokens": ("a<|pad|>b<|im_start|>c<|im_end|>", [TextDelta("abc"), END]),
    "more_behind_the_end": ("a<|im_end|>\nb", [TextDelta("a"), END, TextDelta("b")]),
}
CUT: dict[str, tuple[str, list[Delta]]] = {
    "in_text": ("Hello 5 < 6", [TextDelta("Hello 5 < 6")]),
    "in_the_mark_of_a_call": ("Hello <tool", [TextDelta("Hello")]),
    "in_the_mark_of_a_thought": ("Hello\n<", [TextDelta("Hello")]),
    "in_the_mark_that_ends_a_thought": ("<think>\nHm.\n</thin", [ReasoningDelta("Hm.")]),
    "in_the_mark_behind_words_that_are_no_call": ("<tool_call>sorry</tool_", [TextDelta("sorry")]),
    "in_reasoning": ("<think>\nHm", [ReasoningDelta("Hm")]),
    "before_the_name": ('Hi<tool_call>\n{"name": "get_w', [TextDelta("Hi"), END]),
    "behind_the_name": ('<tool_call>\n{"name": "clock", "argu', [Call("clock")]),
    "in_the_arguments": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Os',
        [Call("get_weather"), Arguments('{"city": "Os')],
    ),
    "behind_a_backslash": (
        '<tool_call>{"name": "get_weather", "arguments": {"city": "\\',
        [Call("get_weather"), Arguments('{"city": "\\')],
    ),
    "in_the_end_mark": (OSLO[:-4], IN_OSLO),
    "behind_the_end_mark": (OSLO + "\n", IN_OSLO),
}
TAPES = IN_ORDER | MALFORMED | CUT


@pytest.mark.parametrize("tape", IN_ORDER)
def test_it_hears_what_was_said_in_its_order(tape: str) -> None:
    text, expected = TAPES[tape]
    assert hear(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", MALFORMED)
def test_malformed_calls_are_neither_lost_nor_raised_nor_shown_with_their_marks(tape: str) -> None:
    text, expected = TAPES[tape]
    assert hear(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", CUT)
def test_what_was_cut_stays_open(tape: str) -> None:
    text, expected = TAPES[tape]
    assert hear(chat(), turn(tools=(WEATHER, CLOCK)), byte_vocabulary().encode(text)) == expected


@pytest.mark.parametrize("tape", [tape for tape in IN_ORDER if tape not in ("umlauts_and_squids",)])
def test_markers_that_are_one_token_are_heard_alike(tape: str) -> None:
    text, expected = TAPES[tape]
    vocabulary = demo_vocabulary()
    assert hear(chat(vocabulary=vocabulary), turn(), vocabulary.encode(text)) == expected


def test_a_name_nested_without_end_is_text() -> None:
    deep = '{"name": ' + "[" * 2000 + "]" * 2000 + "}"
    assert hear(chat(), turn(), byte_vocabulary().encode(f"<tool_call>{deep}</tool_call>")) == [TextDelta(deep), END]


@pytest.mark.parametrize("mark", ["<think>", "</think>", "<tool_call>", "</tool_call>"])
@pytest.mark.parametrize("opened", [CHATML, OPENING])
def test_no_part_of_a_mark_leaks_wherever_the_cut_is(mark: str, opened: str) -> None:
    for size in range(1, len(mark)):
        heard = hear(chat(opened), turn(), byte_vocabulary().encode("word " + mark[:size]))
        assert [piece.text for piece in heard if isinstance(piece, TextDelta | ReasoningDelta)] == ["word"]


@given(st.sampled_from(sorted(TAPES)), sizes)
@settings(max_examples=80)
def test_e3_what_is_heard_does_not_depend_on_the_grouping_of_tokens(tape: str, cuts: list[int]) -> None:
    text, expected = TAPES[tape]
    assert hear(chat(), TO, byte_vocabulary().encode(text), cuts) == expected


MARKS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<", "</", "<tool", "<|im_end|>", "<|pad|>"]
JSON = ['{"name": "clock"', ', "arguments": ', '{"a": "b', '"}', "}", "]", "[", "{", '"', "\\", ":", ",", "null", OSLO]
SCRAPS = st.sampled_from([*MARKS, *JSON, "\n", " ", "a", "é🦑"])


@given(st.lists(SCRAPS, max_size=25).map("".join), sizes, st.sampled_from([byte_vocabulary, demo_vocabulary]))
@settings(max_examples=150)
def test_it_never_raises_and_grouping_never_matters_whatever_is_said(
    text: str, cuts: list[int], vocabulary: type[TokenizerAdapter]
) -> None:
    dialect, tokens = chat(vocabulary=vocabulary()), vocabulary().encode(text)
    one_by_one = hear(dialect, TO, tokens, [1] * len(tokens))
    assert hear(dialect, TO, tokens) == hear(dialect, TO, tokens, cuts) == one_by_one
    assert not any(
        isinstance(piece, TextDelta) and ("<tool_call>" in piece.text or "<think>" in piece.text) for piece in one_by_one
    )


def test_e4_a_chunk_with_the_border_between_reasoning_and_text_is_split() -> None:
    listener, vocabulary = chat().parser_for(turn()), byte_vocabulary()
    heard = listener.feed(Chunk(vocabulary.encode("<think>\nThe end")))
    heard += listener.feed(Chunk(vocabulary.encode(".\n</think>\n\nHel")))
    assert heard == [ReasoningDelta("The end"), ReasoningDelta("."), END, TextDelta("Hel")]


def test_a_name_comes_before_its_arguments_and_these_before_their_end() -> None:
    listener = chat().parser_for(turn())
    heard = [listener.feed(Chunk([token])) for token in byte_vocabulary().encode(OSLO)]
    kinds = [type(piece) for pieces in heard for piece in pieces]
    assert kinds[0] is Call
    assert kinds.count(Arguments) == len('{"city": "Oslo"}')


def test_a_prompt_that_opens_the_reasoning_is_noticed() -> None:
    tokens = byte_vocabulary().encode("Hm.\n</think>\n\nHello.<|im_end|>")
    assert hear(chat(OPENING), turn(tools=()), tokens) == [*HM, TextDelta("Hello."), END]


def test_a_prompt_that_closes_the_reasoning_is_noticed() -> None:
    tokens = byte_vocabulary().encode("Hello.<|im_end|>")
    assert hear(chat(always_thinks=True), turn(effort="none"), tokens) == [TextDelta("Hello."), END]


def test_a_model_that_leaves_out_the_opening_mark_is_heard_as_reasoning() -> None:
    tokens = byte_vocabulary().encode("Hm.\n</think>\n\nHello.<|im_end|>")
    assert hear(chat(always_thinks=True), turn(), tokens) == [*HM, TextDelta("Hello."), END]


def test_words_of_the_user_do_not_open_the_reasoning() -> None:
    tokens = byte_vocabulary().encode("Hello.<|im_end|>")
    assert hear(chat(), turn(user("<think>")), tokens) == [TextDelta("Hello."), END]


def test_reasoning_tokens_are_those_between_the_marks() -> None:
    listener, vocabulary = chat(vocabulary=demo_vocabulary()).parser_for(turn()), demo_vocabulary()
    listener.feed(Chunk(vocabulary.encode("<think>\nHm.\n</think>\n\nHello there.<|im_end|>")))
    assert listener.reasoning_tokens == len(vocabulary.encode("\nHm.\n"))


def test_a_single_call_hides_what_follows() -> None:
    listener = chat().parser_for(turn(parallel_tool_calls=False))
    assert listener.feed(Chunk(byte_vocabulary().encode(THINK + OSLO + ROM + "more"))) == [*HM, *IN_OSLO]
    assert listener.done
    assert listener.finish() == []


def test_a_call_against_tool_choice_none_is_only_text() -> None:
    tokens = byte_vocabulary().encode(OSLO + "<|im_end|>")
    body = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    assert hear(chat(), turn(tool_choice="none"), tokens) == [TextDelta(body), END]


def test_a_call_outside_of_the_allowed_tools_is_only_text() -> None:
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "clock"}]}
    heard = hear(chat(), turn(tools=(WEATHER, CLOCK), tool_choice=choice), byte_vocabulary().encode(OSLO))
    assert not [piece for piece in heard if isinstance(piece, Call)]


def test_e6_half_a_character_at_the_cut_was_never_said() -> None:
    tokens = byte_vocabulary().encode("a🦑")
    assert hear(chat(), turn(), tokens[:-1], [1] * 9) == [TextDelta("a")]


def test_broken_utf8_becomes_a_replacement_character_when_the_model_goes_on() -> None:
    vocabulary = byte_vocabulary()
    squid, stop = vocabulary.encode("🦑"), vocabulary.encode("<|im_end|>")
    assert hear(chat(), turn(), [*squid[:2], *vocabulary.encode("a"), *squid[:1], *stop]) == [TextDelta("\ufffda\ufffd"), END]


def test_log_probabilities_travel_with_the_text_of_their_tokens() -> None:
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode("<think>\nHm.\n</think>\n\nHello you.<|im_end|>")
    listener, texts = chat(vocabulary=vocabulary).parser_for(turn()), []
    for token in tokens:
        texts += [piece for piece in listener.feed(Chunk([token], [Logprob(token, -0.1)])) if isinstance(piece, TextDelta)]
    assert "".join(piece.text for piece in texts) == "Hello you."
    assert "".join(entry["token"] for piece in texts for entry in piece.logprobs) == "Hello you."


def test_a_long_answer_costs_linear_time() -> None:
    vocabulary = demo_vocabulary()
    tokens = vocabulary.encode("The sun is warm. " * 2000 + "\n" * 2000 + "<" * 2000)
    listener = chat(vocabulary=vocabulary).parser_for(turn())
    assert sum(len(listener.feed(Chunk([token]))) for token in tokens) > 4000
