"""Calls in a form that no format reads: a warning, and a problem of each output with such a call."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.families.detection import ReadBack
from responses_app.protocol.deltas import Call, TextDelta
from tests.support.dialects.families.choices import ONE_CALL, choose_for
from tests.support.dialects.parser_driver import CHATML, WEATHER, byte_vocabulary, parse_chunks, problems_of, turn

# `ID`, `NAME` and `ARGUMENTS` stand for the id, the name and the arguments as JSON.
FORMS = (
    "(ID) NAME: ARGUMENTS\n",
    "<do>ARGUMENTS</do:NAME>",
    "<x>ARGUMENTS</x><n>NAME</n>",
    "ARGUMENTS => NAME\n",
    "\ncall NAME ARGUMENTS",
    "**NAME**\n```json\nARGUMENTS\n```\n",
    "I use the tool NAME with ARGUMENTS.",
)
PARTS = {
    "⟦": "{{- '⟦' if loop.first else ' ⟡ ' }}{{- call.function.name + '⟨' }}{{- call.function.arguments | tojson + '⟩' }}",
    "<name --key>": "{{- '<' + call.function.name }}{%- for key, value in call.function.arguments.items() %}"
    "{{- ' --' + key + '=' + value | tojson }}{%- endfor %}{{- ' />' }}",
    "base64": "{{- '<call>' + call.function.name + ' eyJjaXR5IjogIk9zbG8ifQ</call>' }}",
    "query": "{{- '\ncall://' + call.function.name + '?' }}"
    "{%- for key, value in call.function.arguments.items() %}{{- key + '=' + value | string | urlencode }}{%- endfor %}",
    "percent": "{{- '<call>' + call.function.name + ':' + call.function.arguments | tojson | urlencode + '</call>' }}",
    "yaml list": "{{- '```yaml\n' if loop.first else '' }}{{- '- name: ' + call.function.name + '\n  arguments:\n' }}"
    "{%- for key, value in call.function.arguments.items() %}{{- '    ' + key + ': ' + value | string + '\n' }}{%- endfor %}"
    "{{- '```\n' if loop.last else '' }}",
}

TODAY = date(2000, 1, 1)


def assistant() -> dict[str, Any]:
    """Return a message with a call."""
    call = {"id": "call_7", "type": "function", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
    return {"role": "assistant", "content": "", "tool_calls": [call]}


def template_of(form: str) -> str:
    """Return a chat template that writes calls in a form."""
    written = repr(form).replace("NAME", "' + call.function.name + '").replace("ID", "' + call.id + '")
    written = written.replace("ARGUMENTS", "' + call.function.arguments | tojson + '")
    return CHATML.replace(f"{{{{- {ONE_CALL} }}}}", PARTS.get(form) or f"{{{{- {written} }}}}")


@pytest.mark.parametrize("form", [*FORMS, *PARTS])
def test_calls_that_are_not_read_are_a_warning_and_a_problem(form: str) -> None:
    template = template_of(form)
    choice = choose_for(template, model_type="new_model")
    assert choice.detection.calls is ReadBack.DIFFERENT
    assert any("calls of this model will be shown as text" in warning for warning in choice.detection.warnings)
    vocabulary, messages = byte_vocabulary(), [{"role": "user", "content": "Hm?"}, assistant()]
    dialect = ChatDialect(vocabulary, ChatTemplate(template), [vocabulary.id("<|im_end|>") or 0], choice.output)
    written = dialect.template.render(messages, today=TODAY).partition("assistant\n")[2].partition("<|im_end|>")[0]
    asked = turn(tools=(WEATHER,), effort="none")
    for text in (written, f"Let me look. {written}"):
        deltas = parse_chunks(dialect, asked, vocabulary.encode(text), problems=True)
        assert problems_of(deltas) == [("unknown_call_form", "")]
        assert not any(isinstance(delta, Call) for delta in deltas)
        assert "".join(delta.text for delta in deltas if isinstance(delta, TextDelta)).strip() == text.strip()
    prose = "The tool (get_weather), or get_weather: it has \"get_weather\", 'get_weather', get_weather."
    assert problems_of(parse_chunks(dialect, asked, vocabulary.encode(prose), problems=True)) == []
