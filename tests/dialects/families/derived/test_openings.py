"""Prompts that end with the beginning of a message: outputs begin with the recipient, a tool or the user."""

from __future__ import annotations

import json

from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.toolset import toolset
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import choose_for, read_by_letters
from tests.support.dialects.parser_driver import turn

OPENING = "<|from|>model\n<|to|>"
TEMPLATE = """{%- for message in messages %}
{%- if message.role == 'assistant' %}
{%- if message.content is not none %}{{- 'OPENING' + 'user<|text|>' + message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- 'OPENING' + call.function.name + '<|text|>' + call.function.arguments | tojson }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- else %}{{- '<|from|>' + message.role + '\n<|to|>model<|text|>' + message.content + '<|im_end|>\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- 'OPENING' }}{%- endif %}""".replace("OPENING", OPENING)
CHOICE = choose_for(TEMPLATE, "<|from|>", "<|to|>", "<|text|>", model_type="new_model")
CALL = 'get_weather<|text|>{"city": "Oslo"}'
OSLO = ("call", "get_weather", {"city": "Oslo"})


def test_outputs_that_begin_with_the_recipient_are_read() -> None:
    assert (CHOICE.detection.calls, CHOICE.detection.warnings, CHOICE.output.opening) == (ReadBack.EQUAL, (), OPENING)
    for output, items in (
        (CALL, (OSLO,)),
        ("user<|text|>Hello user", (("text", "Hello user"),)),
        (f"user<|text|>I look.{OPENING}{CALL}{OPENING}clock<|text|>{{}}", (("text", "I look."), OSLO, ("call", "clock", {}))),
        (f"{CALL}{OPENING}user<|text|>Done.", (OSLO, ("text", "Done."))),
    ):
        assert read_by_letters(CHOICE.output, OutputCase("turn", output, items)) == list(items)


def test_a_required_call_may_begin_with_the_recipient_and_a_constrained_answer_with_the_user() -> None:
    def written(**how: object) -> str:
        case = turn(**how)
        constraint = constrain(case, toolset(case), CHOICE.output, ReasoningStart.NEVER)
        assert constraint is not None
        return json.dumps(constraint.value)

    call = written(tool_choice="required")
    assert json.dumps("get_weather<|text|>") in call
    assert json.dumps(f"{OPENING}get_weather<|text|>") in call
    assert json.dumps("user<|text|>") in written(tools=(), format={"type": "json_object"})


def test_an_opening_that_calls_alone_have_is_no_opening_of_answers() -> None:
    answers = TEMPLATE.replace(f"'{OPENING}' + 'user<|text|>' + message.content", "message.content")
    assert choose_for(answers, "<|from|>", "<|to|>", "<|text|>", model_type="new_model").output.opening == ""
