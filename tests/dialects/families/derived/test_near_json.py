"""Derived formats of calls with objects near JSON."""

from __future__ import annotations

import pytest

from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.protocol.deltas import Arguments
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.families.derived_laws import check_broken_output, check_strict_tools_are_constrained
from tests.support.dialects.parser_driver import CHATML
from tests.support.dialects.scanned import parse

OSLO = ("get_weather", {"city": "Oslo"})
_OBJECT = """{%- macro object(value) %}{%- if value is mapping %}{{- '{' }}{%- for key, each in value.items() %}
{{- key + ': ' }}{{- object(each) }}{{- '' if loop.last else ', ' }}{%- endfor %}{{- '}' }}
{%- else %}{{- value | tojson }}{%- endif %}{%- endmacro %}"""
_NAME = "call.function.name"
_PRINTED = "({'name': call.function.name, 'arguments': call.function.arguments} | string)"
# What the template writes, with the text of the call with `OSLO`.
FORMS = {
    '<act>{name: "get_weather", arguments: {city: "Oslo"}}</act>': (
        "{{- '<act>{name: \"' + NAME + '\", arguments: ' }}{{- OBJECT }}{{- '}</act>' }}"
    ),
    "<act>{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}</act>": "{{- '<act>' + PRINTED + '</act>' }}",
    "```tool\n{'name': 'get_weather', 'arguments': {'city': 'Oslo'}}\n```\n": "{{- '```tool\\n' + PRINTED + '\\n```\\n' }}",
    '<act>get_weather({city: "Oslo"})</act>': "{{- '<act>' + NAME + '(' }}{{- OBJECT }}{{- ')</act>' }}",
    '<act>get_weather {city: "Oslo"}</act>': "{{- '<act>' + NAME + ' ' }}{{- OBJECT }}{{- '</act>' }}",
    '```ts\nfunctions.get_weather({city: "Oslo"});\n```\n': (
        "{{- '```ts\\nfunctions.' + NAME + '(' }}{{- OBJECT }}{{- ');\\n```\\n' }}"
    ),
}


def output_for(form: str) -> OutputFormat:
    """Return the format derived from a template that writes calls in a form."""
    written = FORMS[form].replace("NAME", _NAME).replace("PRINTED", _PRINTED)
    written = written.replace("OBJECT", "object(call.function.arguments)")
    choice = choose_for(_OBJECT + CHATML.replace(f"{{{{- {ONE_CALL} }}}}", written), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert not choice.detection.warnings
    return choice.output


@pytest.mark.parametrize("form", FORMS)
def test_calls_are_read_and_forced_as_the_template_writes_them(form: str) -> None:
    output = output_for(form)
    assert output.calls is not None
    assert write_calls(output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}]) == form.removesuffix("\n")
    as_json = (
        form.replace("'", '"').replace("city:", '"city":').replace("name:", '"name":').replace("arguments:", '"arguments":')
    )
    for text in (form, as_json):
        case = OutputCase("calls", f"Let me look.\n{text}{text}", (("text", "Let me look."), *[("call", *OSLO)] * 2))
        assert read_by_letters(output, case) == list(case.expected)


@pytest.mark.parametrize(
    ("written", "texts"),
    [
        (
            "'<act>{\"name\": \"' + NAME + '\", \"arguments\": ' + JSON + ',}</act>'",
            ['<act>{"name": "get_weather", "arguments": {"city": "Oslo"},}</act>'],
        ),
        (
            "'<act>{\"name\": \"' + NAME + '\", /* of the call */ \"arguments\": ' + JSON + '}</act>'",
            ['<act>{"name": "get_weather", "arguments": {"city": "Oslo"}}</act>'],
        ),
        ("'<act>' + NAME + ' ' + (call.function.arguments | string) + '</act>'", ["<act>get_weather {'city': 'Oslo'}</act>"]),
        ("'<act>' + NAME + '(' + JSON + ')</act>'", ["<act>get_weather({city: 'Oslo'})</act>"]),
    ],
)
def test_objects_may_be_json_and_near_json_in_turn(written: str, texts: list[str]) -> None:
    call = written.replace("NAME", _NAME).replace("JSON", "call.function.arguments | tojson")
    choice = choose_for(CHATML.replace(ONE_CALL, call), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    forced = write_calls(choice.output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}])
    for text in (forced, *texts, *(text.replace(",}", "}").replace("'", '"') for text in texts)):
        assert read_by_letters(choice.output, OutputCase("call", text, (("call", *OSLO),))) == [("call", *OSLO)]


@pytest.mark.parametrize("form", FORMS)
def test_arguments_arrive_in_parts(form: str) -> None:
    output = output_for(form)
    text = form.partition("Oslo")[0] + "Oslo is"
    assert "".join(delta.text for delta in parse(output, text, cut=True) if isinstance(delta, Arguments)) == '{"city": "Oslo is'


@pytest.mark.parametrize("form", FORMS)
def test_strict_tools_are_constrained(form: str) -> None:
    check_strict_tools_are_constrained(output_for(form))


@pytest.mark.parametrize("form", FORMS)
def test_broken_output_loses_no_word_and_ignores_grouping(form: str) -> None:
    check_broken_output(output_for(form), form)
