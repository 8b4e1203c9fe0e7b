"""Forms of calls that no declared family has, derived from what the chat template writes."""

from __future__ import annotations

import json

import pytest

from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.toolset import toolset
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.parser_driver import CHATML, WEATHER, turn

OSLO = ("get_weather", {"city": "Oslo"})
# Forms of calls that no declared family has: `NAME` and `ARGUMENTS` stand for the name and the arguments as JSON.
NEW_FORMS = (
    "<call>NAME:ARGUMENTS</call>",
    "[[CALL NAME ARGUMENTS]]",
    '<use name="NAME" args=ARGUMENTS/>',
    '<|begin|>{"name": "NAME", "parameters": ARGUMENTS}<|end|>',
    '<tool_call>\n{"name": "NAME", "parameters": ARGUMENTS}\n</tool_call>',
    "\n<|begin|>NAME<|with|>\n```json\nARGUMENTS\n```\n<|end|>",
    "◁call▷NAME◁with▷ARGUMENTS◁/call▷",
    "<fn:NAME>ARGUMENTS</fn>",
    "<fn:NAME>ARGUMENTS</fn:NAME>",
    '```json\n{"name": "NAME", "arguments": ARGUMENTS}\n```\n',
    '```tool_call\n{"name": "NAME", "parameters": ARGUMENTS}\n```\n',
    '<calls>{"tool_calls": [{"name": "NAME", "arguments": ARGUMENTS}]}</calls>',
    '[ACT]{"name": "NAME", "arguments": ARGUMENTS}[/ACT]',
    '<act>{"arguments": ARGUMENTS, "name": "NAME"}</act>',
    '<tool_call>{"arguments": ARGUMENTS, "name": "NAME"}</tool_call>',
    '```json\n{"parameters": ARGUMENTS, "name": "NAME"}\n```\n',
    '<calls>[{"arguments": ARGUMENTS, "name": "NAME"}]</calls>',
    '{"arguments": ARGUMENTS, "name": "NAME"}',
    '<call>{"input": ARGUMENTS, "tool": "NAME"}</call>',
    '<call>{"tool": "NAME", "params": ARGUMENTS}</call>',
    "<NAME>ARGUMENTS</NAME>",
    "[NAME]\nARGUMENTS\n[/NAME]\n",
)


@pytest.mark.parametrize("form", NEW_FORMS)
def test_calls_of_a_new_form_are_read_and_forced_as_the_template_writes_them(form: str) -> None:
    written = (
        form.replace("\n", "\\n")
        .replace("NAME", "' + call.function.name + '")
        .replace("ARGUMENTS", "' + call.function.arguments | tojson + '")
    )
    choice = choose_for(CHATML.replace(ONE_CALL, f"'{written}'"), "<|begin|>", "<|with|>", "<|end|>", model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    assert text.split() == form.replace("NAME", OSLO[0]).replace("ARGUMENTS", '{"city": "Oslo"}').split()
    case = OutputCase("call", f"Let me look.{text}{text}", (("text", "Let me look."), *[("call", *OSLO)] * 2))
    assert read_by_letters(choice.output, case) == list(case.expected)


@pytest.mark.parametrize(
    "text", ["a < b", "<b>Hi</b>", "<get_weather>Rain</get_weather>", "<p>{}</p>", "<get_weather>", "[1, {}]"]
)
def test_tags_that_are_no_call_are_text_where_the_name_is_a_tag(text: str) -> None:
    call = "'<' + call.function.name + '>' + call.function.arguments | tojson + '</' + call.function.name + '>'"
    output = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model").output
    assert read_by_letters(output, OutputCase("text", text, (("text", text),))) == [("text", text)]
    # A strict tool binds the tag with its name alone.
    strict = turn(tools=({**WEATHER, "strict": True},))
    constraint = constrain(strict, toolset(strict), output, ReasoningStart.NEVER)
    assert constraint is not None
    assert '"triggers": ["<get_weather>"]' in json.dumps(constraint.value)


def test_a_list_of_calls_in_the_form_of_messages_is_read_and_forced() -> None:
    call = """{{- '<calls>[' if loop.first else ', ' }}{{- '{"id": "' + call.id + '", "function": {"name": "' + call.function.name }}
{{- '", "arguments": ' + call.function.arguments | tojson + '}}' + (']</calls>' if loop.last else '') }}"""
    output = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), model_type="new_model").output
    assert output.calls is not None
    text = write_calls(output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}] * 2)
    one = '{"id": "0", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}'
    assert text == f"<calls>[{one}, {one}]</calls>"
    case = OutputCase("calls", text, (("call", *OSLO), ("call", *OSLO)))
    assert read_by_letters(output, case) == list(case.expected)


def test_a_token_between_two_objects_is_read_and_forced() -> None:
    call = """{{- ('<|begin|>' if loop.first else '<|with|>') + '{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson + '}' + ('<|end|>' if loop.last else '') }}"""
    choice = choose_for(
        CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), "<|begin|>", "<|with|>", "<|end|>", model_type="new_model"
    )
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}] * 2)
    one = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    assert text == f"<|begin|>{one}<|with|>{one}<|end|>"
    case = OutputCase("calls", f"{text}Done.", (("call", *OSLO), ("call", *OSLO), ("text", "Done.")))
    assert read_by_letters(choice.output, case) == list(case.expected)
    assert "<|with|>" in choice.output.markers


def test_an_id_that_ends_like_the_name_is_read_and_forced() -> None:
    call = "'<c>' + call.id + '::' + call.function.name + '::' + call.function.arguments | tojson + '</c>'"
    output = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model").output
    assert output.calls is not None
    text = write_calls(output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    assert text == '<c>0::get_weather::{"city": "Oslo"}</c>'
    case = OutputCase("calls", f"{text}<c>call_7::clock::{{}}</c>", (("call", *OSLO), ("call", "clock", {})))
    assert read_by_letters(output, case) == list(case.expected)


def test_python_calls_in_blocks_of_code_are_read() -> None:
    call = """{{- '```tool_code\\n' + call.function.name + '(' }}
{%- for key, value in call.function.arguments.items() %}{{- key + '=' + value | tojson + ('' if loop.last else ', ') }}{%- endfor %}
{{- ')\\n```\\n' }}"""
    choice = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    text = '```tool_code\nget_weather(city="Oslo")\n```\n'
    code = "```tool_code\nprint(3)\n```\n```sh\nls\n```"
    case = OutputCase("calls", f"{text}{text}{code}", (("call", *OSLO), ("call", *OSLO), ("text", code)))
    assert read_by_letters(choice.output, case) == list(case.expected)


@pytest.mark.parametrize(
    ("begin", "prefix", "close", "end"),
    [
        ("```tool_code\n", "print(", ")", "\n```"),
        ("```python\n", "print(default_api.", ")", "\n```"),
        ("<|begin|>\n", "api.", "", "\n<|end|>"),
        ("<|begin|>[", "tools.web.", "", "]<|end|>"),
    ],
)
def test_python_calls_in_a_print_or_of_a_module_are_read_and_forced(begin: str, prefix: str, close: str, end: str) -> None:
    call = f"""{{{{- {begin!r} + '{prefix}' + call.function.name + '(' }}}}
{{%- for key, value in call.function.arguments.items() %}}{{{{- key + '=' + value | tojson + ('' if loop.last else ', ') }}}}
{{%- endfor %}}{{{{- '){close}' + {end!r} }}}}"""
    choice = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), "<|begin|>", "<|end|>", model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    assert text == f'{begin}{prefix}get_weather(city="Oslo"){close}{end}'
    bare = f'{begin}get_weather(city="Oslo"){end}'
    case = OutputCase("calls", f"{text}{bare}{text}", (("call", *OSLO),) * 3)
    assert read_by_letters(choice.output, case) == list(case.expected)


@pytest.mark.parametrize("kind", ["json", "python"])
def test_code_that_is_no_call_is_text_where_calls_are_blocks_of_code(kind: str) -> None:
    call = """'```json\\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\\n```'"""
    output = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model").output
    code = f'Look:\n```{kind}\n{{"a": 1}}\n```\nDone.'
    assert read_by_letters(output, OutputCase("text", code, (("text", code),))) == [("text", code)]


def test_a_list_without_a_marker_is_forced_as_the_template_writes_it() -> None:
    call = """'[{"name": "' + call.function.name + '", "parameters": ' + call.function.arguments | tojson + '}]'"""
    choice = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model")
    assert (choice.detection.calls, choice.output.calls is not None) == (ReadBack.EQUAL, True)
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    assert text == '[{"name": "get_weather", "parameters": {"city": "Oslo"}}]'


def test_a_form_that_differs_with_the_arguments_is_not_derived() -> None:
    call = "'<do:' + call.function.name + '>' + call.function.arguments | tojson + '</do ' + call.function.arguments | length | string"
    choice = choose_for(CHATML.replace(ONE_CALL, f"{call} + '>'"), model_type="new_model")
    assert choice.detection.calls is ReadBack.DIFFERENT
    assert any("calls of this model will be shown as text" in warning for warning in choice.detection.warnings)


def test_arguments_in_a_string_are_read() -> None:
    call = """'<ask>{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson | tojson) + '}</ask>'"""
    choice = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")


def test_a_template_that_needs_tools_is_checked_with_tools() -> None:
    template = "{%- if not tools %}{{ raise_exception('tools are needed') }}{% endif %}" + CHATML.replace("<tool_call>", "<do>")
    choice = choose_for(template.replace("</tool_call>", "</do>"), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")


def test_calls_end_before_the_rules_behind_the_last_message() -> None:
    """As with Command R+: a turn of calls has no end token, and each prompt ends with rules for the next answer."""
    named = "{'tool_name': call.function.name, 'parameters': call.function.arguments}"
    end, start = "{{- '<|im_end|>\n' }}", "{{- '<|im_start|>assistant\n' }}"
    rules = "{{- '<|im_start|>system\nWrite the word Action, and behind it a list of the tools to use.<|im_end|>\n' }}"
    template = CHATML.replace(ONE_CALL, f"'\nAction:\n```json\n[\n' + {named} | tojson + '\n]```\n'")
    template = template.replace(start, rules + start).replace(end, f"{{%- if not message.tool_calls %}}{end}{{%- endif %}}")
    choice = choose_for(template, model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    assert text == 'Action:\n```json\n[\n{"tool_name": "get_weather", "parameters": {"city": "Oslo"}}\n]```'
    assert read_by_letters(choice.output, OutputCase("call", text, (("call", *OSLO),))) == [("call", *OSLO)]
