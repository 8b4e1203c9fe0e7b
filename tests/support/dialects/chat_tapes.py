"""Outputs of a chat model, and the deltas expected from the parser."""

from __future__ import annotations

from responses_app.protocol.deltas import Arguments, Call, Delta, ReasoningDelta, TextDelta
from tests.support.dialects.parser_driver import END, call

OSLO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
ROM = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rom"}}\n</tool_call>'
IN_OSLO, IN_ROM = call('{"city": "Oslo"}'), call('{"city": "Rom"}')
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
        [*call("{}", "clock"), TextDelta('"x": -1.5'), END],
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
