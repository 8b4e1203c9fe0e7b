"""Efforts of reasoning: what chat templates are told, and the efforts that they tell apart."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.dialects.chat.efforts import distinct_efforts, effort_variables
from responses_app.dialects.chat.template import ChatTemplate
from tests.support.dialects.parser_driver import CHATML, chat, turn

QUESTION = "{%- for message in messages %}{{ message.content }}{%- endfor %}"


def efforts_of(end: str) -> tuple[dict[str, dict[str, Any]], tuple[str, ...]]:
    template = ChatTemplate(QUESTION + end)
    variables = effort_variables(template)
    return variables, distinct_efforts(template, variables)


def test_a_template_that_prints_the_effort_is_told_it() -> None:
    variables, efforts = efforts_of("Effort: {{ reasoning_effort | default('medium') }}")
    assert variables["low"] == {"reasoning_effort": "low"}
    assert variables["xhigh"] == variables["high"] == {"reasoning_effort": "high"}
    assert variables["none"] == {}
    assert efforts == ("low", "medium", "high")


def test_a_template_that_rejects_other_values_is_told_those_that_it_takes() -> None:
    variables, efforts = efforts_of(
        "{%- set effort = reasoning_effort | default('xhigh') %}"
        "{%- if effort not in ('xhigh', 'low') %}{{ raise_exception('no') }}{%- endif %}Effort: {{ effort }}"
    )
    assert variables["low"] == {"reasoning_effort": "low"}
    assert variables["max"] == {"reasoning_effort": "xhigh"}
    assert variables["medium"] == {}
    assert efforts == ("low", "medium")


def test_a_template_without_reasoning_by_default_reasons_when_it_is_asked_to() -> None:
    variables, efforts = efforts_of(
        "{%- set effort = reasoning_effort | default('no_think') %}"
        "{{ '<think></think>' if effort == 'no_think' else '<think>' + effort if effort in ('low', 'high') else '<think></think>' }}"
    )
    assert variables["none"] == {}
    assert variables["medium"] == {"reasoning_effort": "high"}
    assert efforts == ("none", "low", "medium")


@pytest.mark.parametrize(("off", "on"), [("disabled", "enabled"), ("off", "on")])
def test_a_mode_of_thinking_is_switched(off: str, on: str) -> None:
    variables, efforts = efforts_of(
        f"{{%- if thinking_mode == '{off}' %}}</think>{{%- elif thinking_mode == '{on}' %}}<think>{{%- endif %}}"
    )
    assert (variables["none"], variables["high"]) == ({"thinking_mode": off}, {"thinking_mode": on})
    assert efforts == ("none", "medium")


@pytest.mark.parametrize(
    ("end", "effort", "expected"),
    [
        ("{{ '</think>' if skip_reasoning else '' }}", "none", {"skip_reasoning": True}),
        ("{{ '</think>' if thinking_budget == 0 else '' }}", "minimal", {"thinking_budget": 0}),
        ("{{ 'Be short.' if low_effort else '' }}", "low", {"low_effort": True}),
        ("{%- set reasoning_effort = 'high' %}{{ reasoning_effort }}", "low", {}),
    ],
)
def test_other_variables_are_set_where_the_template_reads_them(end: str, effort: str, expected: dict[str, Any]) -> None:
    assert efforts_of(end)[0][effort] == expected


def test_a_template_that_knows_no_efforts_has_one() -> None:
    variables, efforts = efforts_of("<think>")
    assert not any(variables.values())
    assert efforts == ("medium",)


def test_the_prompt_of_a_turn_has_its_effort() -> None:
    dialect = chat(CHATML + "Effort: {{ reasoning_effort | default('usual') }}")
    prompts = [dialect.token_text(dialect.render(turn(effort=effort))) for effort in (None, "low", "high")]
    assert [prompt.rpartition(": ")[2] for prompt in prompts] == ["usual", "low", "high"]
    assert dialect.efforts == ("none", "low", "medium", "high")
