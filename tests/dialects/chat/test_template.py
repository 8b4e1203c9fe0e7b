"""Functions and variables expected by the chat templates of the model hub."""

from __future__ import annotations

import json
from datetime import date

import pytest

from responses_app.dialects.chat.template import ChatTemplate, TemplateRejected
from tests.support.dialects.parser_driver import TODAY

HI = [{"role": "user", "content": "ü"}]


def render(source: str, **how: object) -> str:
    return ChatTemplate(source, {"bos_token": "<s>"}).render(HI, today=TODAY, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ bos_token }}{{ messages[0].content }}", "<s>ü"),
        ("{{ {'b': 'ü<', 'a': 1} | tojson }}", '{"b": "ü<", "a": 1}'),
        ("{{ {'a': 1} | tojson(indent=1) }}", '{\n "a": 1\n}'),
        ("{{ strftime_now('%d %B %Y') }} {{ date_string }}", "20 November 2026 20 Nov 2026"),
        ("{% for m in messages %}{% continue %}{% endfor %}x", "x"),
        ("{% generation %}{{ messages[0].content }}{% endgeneration %}", "ü"),
        ("{% if tools %}a{% else %}b{% endif %}", "b"),
        ("{% if add_generation_prompt and enable_thinking %}go{% endif %}", "go"),
        ("  {%- if true %}\n    a\n  {% endif %}", "    a\n"),
    ],
)
def test_template_renders(source: str, text: str) -> None:
    assert render(source) == text


def test_the_day_is_the_day_of_the_turn() -> None:
    assert ChatTemplate("{{ strftime_now('%Y') }}").render(HI, today=date(2031, 1, 1)) == "2031"


def test_tools_may_have_a_template_of_their_own() -> None:
    template = ChatTemplate("plain", with_tools="tools")
    assert template.render(HI, today=TODAY) == "plain"
    assert template.render(HI, today=TODAY, tools=[{"type": "function"}]) == "tools"


def test_template_may_append_to_lists_of_its_own() -> None:
    source = "{% set names = [] %}{% for message in messages %}{% set _ = names.append(message.role) %}{% endfor %}{{ names }}"
    assert "'user'" in render(source)


def test_template_that_loops_over_missing_tools_has_an_empty_list() -> None:
    assert "[]" in render("{{ messages[0].content }}{% for tool in tools %}{{ tool }}{% endfor %}{{ tools }}")


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('no') }}",
        "{{ messages[0].nothing.at.all }}",
        "{{ 1 + 'a' }}",
        "{{ messages.__class__.__mro__ }}",
        "{{ messages.append(1) }}",
        "{% for each in range(10 ** 9) %}{% endfor %}",
        "{{ 1 // 0 }}",
    ],
)
def test_invalid_or_unsafe_template_is_refused(source: str) -> None:
    with pytest.raises(TemplateRejected):
        render(source)


def test_a_template_that_reads_functions_gets_the_tools_as_a_text() -> None:
    template = ChatTemplate("{{ functions + ' ' + datetime + messages[0].content }}")
    tool = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}
    messages = [{"role": "user", "content": "Hello"}]
    text = template.render(messages, today=date(2026, 11, 28), tools=[tool])
    functions, _, behind = text.rpartition(" ")
    assert json.loads(functions) == [tool["function"]]
    assert behind == "2026-11-28Hello"
    assert template.render(messages, today=date(2026, 11, 28)) == "[] 2026-11-28Hello"
