"""Outputs of a harmony model, and the deltas expected from the parser."""

from __future__ import annotations

from responses_app.protocol.deltas import Delta, ReasoningDelta, TextDelta
from tests.support.dialects.parser_driver import END, call

ANALYSIS = "<|channel|>analysis<|message|>"
PREAMBLE = "<|channel|>commentary<|message|>"
FINAL = "<|channel|>final<|message|>"
CALLING = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
NEXT = "<|end|><|start|>assistant"


def final(text: str) -> TextDelta:
    return TextDelta(text, phase="final_answer")


def preamble(text: str) -> TextDelta:
    return TextDelta(text, phase="commentary")


WELL_FORMED: dict[str, tuple[str, list[Delta]]] = {
    "answer": (FINAL + "Hi 🙂<|return|>", [final("Hi 🙂"), END]),
    "thought_and_answer": (ANALYSIS + "Hm." + NEXT + FINAL + "Hi<|return|>", [ReasoningDelta("Hm."), END, final("Hi"), END]),
    "two_calls_in_one_turn": (
        ANALYSIS
        + "Two."
        + NEXT
        + PREAMBLE
        + "I look."
        + NEXT
        + CALLING
        + '{"city":"Oslo"}'
        + NEXT
        + CALLING
        + '{"city":"Rom"}<|call|>',
        [ReasoningDelta("Two."), END, preamble("I look."), END, *call('{"city":"Oslo"}'), *call('{"city":"Rom"}')],
    ),
    "reasoning_between_calls": (
        ANALYSIS + "a" + NEXT + CALLING + "{}" + NEXT + ANALYSIS + "b" + NEXT + CALLING + "{}<|call|>",
        [ReasoningDelta("a"), END, *call("{}"), ReasoningDelta("b"), END, *call("{}")],
    ),
    "recipient_before_the_channel": (
        " to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
        call("{}"),
    ),
    "call_in_the_analysis_channel": ("<|channel|>analysis to=functions.get_weather code<|message|>{}<|call|>", call("{}")),
    "call_without_arguments": (CALLING + "<|call|>", call("")),
    "constraint_glued_to_the_name": (
        "<|channel|>commentary to=functions.get_weather<|constrain|>json<|message|>{}<|call|>",
        call("{}"),
    ),
    "text_behind_calls": (
        CALLING + "{}" + NEXT + FINAL + "Done." + NEXT + ANALYSIS + "Hm." + NEXT + FINAL + "Yes.<|return|>",
        [*call("{}"), final("Done."), END, ReasoningDelta("Hm."), END, final("Yes."), END],
    ),
    "reasoning_alone": (ANALYSIS + "Hm.<|return|>", [ReasoningDelta("Hm."), END]),
    "empty_reasoning": (ANALYSIS + NEXT + FINAL + "Hi<|return|>", [final("Hi"), END]),
    "name_with_dots_and_dashes": (CALLING.replace("get_weather", "a.b-c") + "{}<|call|>", call("{}", "a.b-c")),
    "json_answer": ("<|channel|>final <|constrain|>json<|message|>{}<|return|>", [final("{}"), END]),
    "name_that_no_tool_has": ("<|channel|>commentary to=functions.dance<|message|>{}<|call|>", call("{}", "dance")),
}
MALFORMED: dict[str, tuple[str, list[Delta]]] = {
    "text_before_the_channel": ("Hello there" + FINAL + "ok<|return|>", [final("Hello there"), END, final("ok"), END]),
    "header_without_a_message": (
        "<|channel|>analysis I think" + NEXT + FINAL + "ok<|return|>",
        [ReasoningDelta("I think"), END, final("ok"), END],
    ),
    "message_without_an_end": (FINAL + "one" + ANALYSIS + "two<|end|>", [final("one"), END, ReasoningDelta("two"), END]),
    "text_between_messages": (
        FINAL + "one<|end|>stray<|start|>assistant" + FINAL + "two<|return|>",
        [final("one"), END, final("stray"), END, final("two"), END],
    ),
    "no_header_at_all": ("Just text.", [final("Just text.")]),
    "message_without_a_channel": ("<|message|>plain<|return|>", [final("plain"), END]),
    "unknown_channel": ("<|channel|>musings<|message|>hm<|end|>", [final("hm"), END]),
    "unknown_recipient": ("<|channel|>commentary to=browser.search<|message|>cats<|call|>", [preamble("cats"), END]),
    "server_tool_that_nobody_offered": (
        "<|channel|>analysis to=python code<|message|>1+1<|call|>",
        [ReasoningDelta("1+1"), END],
    ),
    "recipient_without_a_name": ("<|channel|>commentary to=functions.<|message|>x<|end|>", [preamble("x"), END]),
    "call_in_the_header": (
        '<|channel|>commentary to=functions.get_weather {"city":"Rom"}<|call|>',
        call('{"city":"Rom"}'),
    ),
    "words_in_the_header_of_a_call": (
        "<|channel|>commentary to=functions.get_weather please now<|message|>{}<|call|>",
        [preamble("please now"), END, *call("{}")],
    ),
    "words_before_the_constraint": ("<|channel|>final well <|constrain|>json<|message|>{}<|return|>", [final("well{}"), END]),
    "a_constraint_alone": ("<|constrain|>json<|message|>{}<|return|>", [final("{}"), END]),
    "words_in_the_header_of_an_answer": ("<|channel|>final well <|message|>ok<|return|>", [final("well ok"), END]),
    "unknown_role": ("<|start|>narrator<|channel|>final<|message|>ok<|end|>", [final("narrator"), END, final("ok"), END]),
    "another_role": ("<|start|>user<|message|>me<|end|>", [final("me"), END]),
    "marks_inside_of_a_message": (FINAL + "a<|message|>b<|constrain|>c<|endoftext|>d", [final("abc"), END, final("d")]),
    "constraint_before_the_recipient": (
        "<|channel|>commentary <|constrain|>json to=functions.get_weather<|message|>{}<|call|>",
        call("{}"),
    ),
    "type_before_the_recipient": ("<|channel|>commentary json to=functions.get_weather<|message|>{}<|call|>", call("{}")),
    "channel_behind_everything": (
        " to=functions.get_weather <|constrain|>json<|channel|>commentary<|message|>{}<|call|>",
        call("{}"),
    ),
    "channel_on_both_sides_of_the_recipient": (
        "<|channel|>analysis to=functions.get_weather<|channel|>commentary <|constrain|>json<|message|>{}<|call|>",
        call("{}"),
    ),
    "two_channels_in_one_header": ("<|channel|>analysis<|channel|>final<|message|>ok<|return|>", [final("ok"), END]),
}
TAPES = WELL_FORMED | MALFORMED
