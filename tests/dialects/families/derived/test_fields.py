"""Derived formats of calls with a field for each parameter."""

from __future__ import annotations

import json

import pytest

from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.protocol.deltas import Arguments, Call
from tests.support.dialects.families.cases import OutputCase
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.families.derived_laws import check_broken_output, check_strict_tools_are_constrained
from tests.support.dialects.parser_driver import CHATML
from tests.support.dialects.scanned import parse

OSLO = ("get_weather", {"city": "Oslo"})
# Texts before the name, before the first key, before other keys, between key and value, behind the value, and at the end.
# Values are JSON in all forms but those with lines.
FORMS = {
    "lines": ("<act>\nname: ", "\n", "\n", ": ", "", "\n</act>"),
    "lines behind a name": ("<act>", "\n", "\n", ": ", "", "\n</act>"),
    "lines of a list": ("[ACT]\ntool: ", "\n- ", "\n- ", ": ", "", "\n[/ACT]"),
    "yaml": ("<act>\nname: ", "\narguments:\n  ", "\n  ", ": ", "", "\n</act>"),
    "yaml in a block": ("```yaml\nname: ", "\narguments:\n  ", "\n  ", ": ", "", "\n```\n"),
    "toml": ('```toml\n[call]\nname = "', '"\n[call.arguments]\n', "\n", " = ", "", "\n```\n"),
    "shell": ("<cmd>", " --", " --", "=", "", "</cmd>"),
    "shell in a block": ("```bash\n", " --", " --", "=", "", "\n```\n"),
    "lisp": ("<lisp>(", " :", " :", " ", "", ")</lisp>"),
    "lisp without a marker": ("(call ", " (", " (", " ", ")", ")"),
    "flat object": ('<act>{"tool": "', '", "', ', "', '": ', "", "}</act>"),
    "list of objects": ('<act>{"name": "', '", "arguments": [{"name": "', ', {"name": "', '", "value": ', "}", "]}</act>"),
}


def written(form: str, name: str, **arguments: object) -> str:
    """Write a call in a form."""
    begin, first, between, key_end, value_end, end = FORMS[form]
    values = {key: value if form.startswith("lines") else json.dumps(value) for key, value in arguments.items()}
    fields = [
        f"{between if index else first}{key}{key_end}{value}{value_end}" for index, (key, value) in enumerate(values.items())
    ]
    return f"{begin}{name}{''.join(fields)}{end}"


def output_for(form: str) -> OutputFormat:
    """Return the format derived from a template that writes calls in a form."""
    begin, first, between, key_end, value_end, end = FORMS[form]
    value = "(value if value is string else value | tojson)" if form.startswith("lines") else "value | tojson"
    call = f"""{{{{- {begin!r} + call.function.name }}}}{{%- for key, value in call.function.arguments.items() %}}
{{{{- ({first!r} if loop.first else {between!r}) + key + {key_end!r} + {value} + {value_end!r} }}}}{{%- endfor %}}{{{{- {end!r} }}}}"""
    choice = choose_for(CHATML.replace(f"{{{{- {ONE_CALL} }}}}", call), model_type="new_model")
    assert (choice.detection.calls, choice.detection.tool_parser) == (ReadBack.EQUAL, "template")
    assert not choice.detection.warnings
    return choice.output


@pytest.mark.parametrize("form", FORMS)
def test_calls_are_read_and_forced_as_the_template_writes_them(form: str) -> None:
    output = output_for(form)
    assert output.calls is not None
    text = written(form, OSLO[0], **OSLO[1])
    assert write_calls(output.calls.syntax, [{"name": OSLO[0], "arguments": OSLO[1]}]) == text.removesuffix("\n")
    case = OutputCase("calls", f"Let me look.\n{text}{text}", (("text", "Let me look."), *[("call", *OSLO)] * 2))
    assert read_by_letters(output, case) == list(case.expected)


@pytest.mark.parametrize("form", FORMS)
def test_arguments_of_all_types_are_read(form: str) -> None:
    values = {"title": "A title", "days": 3, "draft": True, "tags": ["a", "b c"], "place": {"name": "Bergen", "height": 1.5}}
    shown = {
        key: value if isinstance(value, str) or not form.startswith("lines") else json.dumps(value)
        for key, value in values.items()
    }
    deltas = parse(output_for(form), written(form, "report", **shown))
    assert [delta.name for delta in deltas if isinstance(delta, Call)] == ["report"]
    assert json.loads("".join(delta.text for delta in deltas if isinstance(delta, Arguments))) == values


@pytest.mark.parametrize("form", [form for form in FORMS if form.startswith("lines")])
def test_a_text_may_have_several_lines(form: str) -> None:
    text = written(form, OSLO[0], city="Oslo:\n- north\nunit: south\n")
    case = OutputCase("call", text, (("call", "get_weather", {"city": "Oslo:\n- north\nunit: south"}),))
    assert read_by_letters(output_for(form), case) == list(case.expected)


def test_key_is_in_the_line_of_its_beginning() -> None:
    output, text = output_for("lines of a list"), "[ACT]\ntool: unknown\n- place: Oslo\n-\n unit: south\n[/ACT]"
    for pieces in (list(text), [text]):
        arguments = "".join(delta.text for delta in parse(output, pieces) if isinstance(delta, Arguments))
        assert json.loads(arguments) == {"place": "Oslo\n-\n unit: south"}


@pytest.mark.parametrize("form", FORMS)
def test_arguments_arrive_in_parts(form: str) -> None:
    text = written(form, **{"name": OSLO[0], **OSLO[1]}).partition("Oslo")[0] + "Oslo is"
    deltas = parse(output_for(form), text, cut=True)
    assert "".join(delta.text for delta in deltas if isinstance(delta, Arguments)) == '{"city": "Oslo is'


@pytest.mark.parametrize("text", ["(call me)", "```bash\nls --all\n```", "```yaml\nname: x\n```", "(call get_weather2 x)"])
def test_text_that_is_no_call_stays(text: str) -> None:
    for form in ("lisp without a marker", "shell in a block", "yaml in a block"):
        assert read_by_letters(output_for(form), OutputCase("text", text, (("text", text),))) == [("text", text)]


@pytest.mark.parametrize("form", FORMS)
def test_strict_tools_are_constrained(form: str) -> None:
    check_strict_tools_are_constrained(output_for(form))


@pytest.mark.parametrize("form", FORMS)
def test_broken_output_loses_no_word_and_ignores_grouping(form: str) -> None:
    check_broken_output(output_for(form), written(form, OSLO[0], **OSLO[1], unit="celsius"))
