"""Formats with messages inside of an output: heads of messages, of which the prompt has written the first."""

from __future__ import annotations

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import output_format
from responses_app.protocol.deltas import ReasoningDelta, TextDelta
from tests.support.dialects.parser_driver import END, byte_vocabulary, call, parse_chunks, turn

MUSE_TEMPLATE = "<|im_start|>{{ messages[0].content }}<|im_end|><|start|>assistant"
TEMPLATES = {
    "inkling": "<|im_start|>{{ messages[0].content }}<|im_end|><|message_model|>",
    "muse": MUSE_TEMPLATE,
    "muse_glimmer": MUSE_TEMPLATE,
}
MUSE_CALL = (
    " to=get_weather<|message|><atem:function_calls>\n"
    '<atem:invoke name="get_weather">\n<atem:parameter name="city">Oslo</atem:parameter>\n</atem:invoke>\n'
    "</atem:function_calls>"
)
INKLING_CALL = 'get_weather<|content_invoke_tool_json|>{"name": "get_weather", "args": {"city": "Oslo"}}'
IN_OSLO, HELLO, THOUGHT = call('{"city": "Oslo"}'), [TextDelta("Hello."), END], [ReasoningDelta("Hm."), END]
CASES = [
    ("inkling", "<|content_text|>Hello.<|end_message|>", HELLO),
    (
        "inkling",
        "<|content_thinking|>Hm.<|end_message|><|message_model|><|content_text|>Hello.<|end_message|>",
        [*THOUGHT, *HELLO],
    ),
    ("inkling", f"{INKLING_CALL}<|end_message|>", IN_OSLO),
    ("inkling", f"<|content_thinking|>Hm.<|end_message|><|message_model|>{INKLING_CALL}<|end_message|>", [*THOUGHT, *IN_OSLO]),
    (
        "inkling",
        f"<|content_text|>Hello.<|end_message|><|message_model|>{INKLING_CALL}<|end_message|>"
        "<|message_model|><|content_text|>Hello.<|end_message|>",
        [*HELLO, *IN_OSLO, *HELLO],
    ),
    ("muse_glimmer", " to=user<|message|>Hello.", HELLO),
    ("muse_glimmer", "<|message|>Hello.", HELLO),
    ("muse_glimmer", " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hello.", [*THOUGHT, *HELLO]),
    ("muse_glimmer", f" to=self<|message|>Hm.<|eom|><|start|>assistant{MUSE_CALL}", [*THOUGHT, *IN_OSLO]),
    ("muse_glimmer", f"{MUSE_CALL}<|eom|><|start|>assistant{MUSE_CALL}<|eom|>", [*IN_OSLO, *IN_OSLO]),
    ("muse", "<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hello.", [*THOUGHT, *HELLO]),
    ("muse", f"<|message|>Hm.<|eom|><|start|>assistant{MUSE_CALL}", [*THOUGHT, *IN_OSLO]),
    ("muse", " to=commentary<|message|>Hello.<|eom|><|start|>assistant<|message|>Hm.<|eom|>", [*HELLO, *THOUGHT]),
    ("muse", " to=developer<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hello.", [*THOUGHT, *HELLO]),
    ("muse_glimmer", " to=developer<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hello.", [*THOUGHT, *HELLO]),
    ("muse_glimmer", " to=user<|message|>Hello to=self and all.", [TextDelta("Hello to=self and all."), END]),
]


@pytest.mark.parametrize("cuts", [[], [1] * 1000, [7] * 200])
@pytest.mark.parametrize(("parser", "text", "expected"), CASES)
def test_messages_of_an_output_are_items(parser: str, text: str, expected: list[object], cuts: list[int]) -> None:
    vocabulary, output = byte_vocabulary(), output_format(parser, parser)
    stop = vocabulary.id("<|im_end|>")
    assert stop is not None
    assert output is not None
    dialect = ChatDialect(vocabulary, ChatTemplate(TEMPLATES[parser]), [stop], output)
    assert parse_chunks(dialect, turn(), vocabulary.encode(f"{text}<|im_end|>"), cuts) == expected
