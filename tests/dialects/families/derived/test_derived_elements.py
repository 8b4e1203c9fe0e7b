"""Calls with an element for each parameter in a form that no declared family has: read and forced as the template writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.formats.call_text import write_calls
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.parser_driver import CHATML
from tests.support.dialects.scanned import parse, text_of

PLAN = ("plan_trip", {"title": "Trip", "place": {"name": "Bergen"}, "days": 3, "exact": True})
CLOCK: tuple[str, dict[str, Any]] = ("clock", {})
_VALUE = "{{- value if value is string else value | tojson }}"
# A call with NAME, an element with KEY and VALUE, the text behind the elements, and the text between two calls.
FORMS = {
    "in_arguments": (
        "<tool_call>\n<name>NAME</name>\n<arguments>\n",
        "<KEY>VALUE</KEY>\n",
        "</arguments>\n</tool_call>",
        "\n",
    ),
    "without_white_space": ("<call><fn>NAME</fn><args>", "<KEY>VALUE</KEY>", "</args></call>", ""),
    "named_call": ('<tool name="NAME">\n', "<KEY>\nVALUE\n</KEY>\n", "</tool>", "\n"),
    "name_as_element": ("<NAME>\n", "<KEY>VALUE</KEY>\n", "</NAME>", "\n"),
    "keys_in_attributes": ('<do tool="NAME">\n', '  <param key="KEY">VALUE</param>\n', "</do>", "\n"),
    "attributes": ('<do tool="NAME"', ' KEY="VALUE"', "/>", "\n"),
    "attributes_and_an_end_tag": ("<do name='NAME'", " KEY='VALUE'", "></do>", ""),
    "name_as_tag_with_attributes": ("<NAME", ' KEY="VALUE"', " />", "\n"),
    "values_without_end": ("<|call|>NAME", "<|key|>KEY<|value|>VALUE", "<|/call|>", ""),
}


def template_of(call: str, element: str, end: str, separator: str) -> str:
    """Return a chat template that writes calls in a form."""
    written = [
        f"{{{{- {call!r}.replace('NAME', call.function.name) }}}}",
        "{%- for key, value in call.function.arguments.items() %}",
        *(
            _VALUE if part == "VALUE" else f"{{{{- {part!r}.replace('KEY', key) }}}}"
            for part in element.replace("VALUE", "\0VALUE\0").split("\0")
        ),
        "{%- endfor %}",
        f"{{{{- {end!r}.replace('NAME', call.function.name) + ('' if loop.last else {separator!r}) }}}}",
    ]
    return CHATML.replace(f"{{{{- {ONE_CALL} }}}}", "".join(written))


def call_of(form: tuple[str, str, str, str], name: str, arguments: Mapping[str, Any]) -> str:
    """Write a call in a form."""
    call, element, end, _ = form
    values = {key: each if isinstance(each, str) else json.dumps(each) for key, each in arguments.items()}
    elements = (element.replace("KEY", key).replace("VALUE", each) for key, each in values.items())
    return f"{call.replace('NAME', name)}{''.join(elements)}{end.replace('NAME', name)}"


@pytest.mark.parametrize("name", FORMS)
def test_calls_with_elements_of_a_new_form_are_read_and_forced(name: str) -> None:
    form = FORMS[name]
    choice = choose_for(template_of(*form), "<|call|>", "<|/call|>", "<|key|>", "<|value|>", model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    assert choice.detection.warnings == ()
    text = form[3].join(call_of(form, *each) for each in (PLAN, CLOCK, PLAN))
    syntax = choice.output.calls.syntax
    assert write_calls(syntax, [{"name": each, "arguments": values} for each, values in (PLAN, CLOCK, PLAN)]) == text
    case = OutputCase(
        "calls", f"Let me look.{text}", (("text", "Let me look."), *(("call", *each) for each in (PLAN, CLOCK, PLAN)))
    )
    assert read_by_letters(choice.output, case) == list(case.expected)


@pytest.mark.parametrize("name", FORMS)
def test_a_string_with_tags_and_lines_is_whole(name: str) -> None:
    form = FORMS[name]
    output = choose_for(template_of(*form), "<|call|>", "<|/call|>", "<|key|>", "<|value|>").output
    place = 'a <b>"bold"</b> place\n\nof <city> & {"more": 1}'
    case = OutputCase("call", call_of(form, "get_weather", {"city": place}), (("call", "get_weather", {"city": place}),))
    assert read_by_letters(output, case) == list(case.expected)


@pytest.mark.parametrize("name", ["name_as_element", "name_as_tag_with_attributes"])
def test_text_with_tags_is_no_call_where_calls_have_no_marker(name: str) -> None:
    output = choose_for(template_of(*FORMS[name])).output
    text = "If a < b, write <b>bold</b> or <other>\n<city>x</city></other>."
    assert read_by_letters(output, OutputCase("text", text, (("text", text),))) == [("text", text)]


def test_attributes_in_json_are_read_and_forced() -> None:
    template = template_of('<calls><do tool="NAME"', " KEY=VALUE", "/></calls>", "\n")
    choice = choose_for(template.replace(_VALUE, "{{- value | tojson }}"), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert choice.output.calls is not None
    text = '<calls><do tool="plan_trip" title="Trip" place={"name": "Bergen"} days=3 exact=true/></calls>'
    assert write_calls(choice.output.calls.syntax, [{"name": PLAN[0], "arguments": PLAN[1]}]) == text
    text += '<calls><do tool="get_weather" city="a \\"b\\" c" /></calls><calls><do tool="get_weather" city=Oslo/></calls>'
    calls: list[dict[str, Any]] = [{"city": 'a "b" c'}, {"city": "Oslo"}]
    expected = (("call", *PLAN), *(("call", "get_weather", each) for each in calls))
    assert read_by_letters(choice.output, OutputCase("calls", text, expected)) == list(expected)
    # A model may repeat a bracket without end.
    brackets = "[" * 2000
    assert brackets in text_of(parse(choice.output, [f'<calls><do tool="get_weather" city={brackets}'], cut=True))


def test_entities_in_attributes_are_decoded_where_the_template_writes_them() -> None:
    form = FORMS["attributes"]
    output = choose_for(
        template_of(*form).replace(
            "{{- value if value is string else value | tojson }}", "{{- (value if value is string else value | tojson) | e }}"
        ),
        model_type="new_model",
    ).output
    text = '<do tool="plan_trip" title="a &lt; &#34;b&#34;" place="{&#34;name&#34;: &#34;Bergen&#34;}"/>'
    expected = [("call", "plan_trip", {"title": 'a < "b"', "place": {"name": "Bergen"}})]
    assert read_by_letters(output, OutputCase("calls", text, tuple(expected))) == expected


def test_a_number_before_the_name_is_read() -> None:
    call = """'<tool id="' + loop.index0 | string + '" name="' + call.function.name + '">' + call.function.arguments | tojson"""
    choice = choose_for(CHATML.replace(ONE_CALL, f"{call} + '</tool>'"), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    text = '<tool id="0" name="clock">{}</tool><tool id="1" name="clock">{}</tool>'
    assert read_by_letters(choice.output, OutputCase("calls", text, (("call", *CLOCK),) * 2)) == [("call", *CLOCK)] * 2


@pytest.mark.parametrize("model_type", ["new_model", "qwen3_5"])
@pytest.mark.parametrize("escapes", [True, False])
def test_entities_are_decoded_where_the_template_writes_them(model_type: str, escapes: bool) -> None:
    form = ("<tool_call>\n<function=NAME>\n", "<parameter=KEY>\nVALUE\n</parameter>\n", "</function>\n</tool_call>", "\n")
    template = template_of(*form)
    if escapes:
        template = template.replace("{{- value if", "{{- value | e if")
    choice = choose_for(template, model_type=model_type)
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "qwen3_coder")
    text = 'a &lt; b &amp;&amp; "c" &#39;&quot; &copy; &amp;lt; <b> & &am'
    decoded = 'a < b && "c" \'" &copy; &lt; <b> & &am'
    call = call_of(form, "get_weather", {"city": text})
    case = OutputCase("call", call, (("call", "get_weather", {"city": decoded if escapes else text}),))
    assert read_by_letters(choice.output, case) == list(case.expected)


@pytest.mark.parametrize(("space", "parser"), [("", "mimo"), ("\n", "qwen3_coder")])
def test_values_keep_the_line_breaks_that_the_template_does_not_write(space: str, parser: str) -> None:
    call = f"""{{{{- '<tool_call>\n<function=' + call.function.name + '>\n' }}}}
{{%- for key, value in call.function.arguments.items() %}}{{{{- '<parameter=' + key + '>' + {space!r} }}}}
{{{{- value if value is string else value | tojson }}}}{{{{- {space!r} + '</parameter>\n' }}}}{{%- endfor %}}
{{{{- '</function>\n</tool_call>' }}}}"""
    choice = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, parser)
    assert choice.output.calls is not None
    text = write_calls(choice.output.calls.syntax, [{"name": "get_weather", "arguments": {"city": "Oslo"}}])
    assert f"<parameter=city>{space}Oslo{space}</parameter>" in text
    written = (
        f"<tool_call>\n<function=get_weather>\n<parameter=city>{space}\nOslo\n{space}</parameter>\n</function>\n</tool_call>"
    )
    case = OutputCase("call", written, (("call", "get_weather", {"city": "\nOslo\n"}),))
    assert read_by_letters(choice.output, case) == list(case.expected)
