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


def test_an_effort_that_a_template_rejects_becomes_the_next_one_up() -> None:
    variables, efforts = efforts_of(
        "{%- if reasoning_effort is defined and reasoning_effort not in ('low', 'medium', 'xhigh') %}{{ raise_exception('no') }}"
        "{%- endif %}{{ reasoning_effort | default('medium') }}"
    )
    assert variables["high"] == variables["xhigh"] == variables["max"] == {"reasoning_effort": "xhigh"}
    assert efforts == ("low", "medium", "high")


@pytest.mark.parametrize(
    ("name", "off", "on"),
    [
        ("reasoning", {"reasoning": False}, {}),
        ("enable_reasoning", {"enable_reasoning": False}, {}),
        ("no_thinking", {"no_thinking": True}, {}),
        ("skip_thinking", {"skip_thinking": True}, {}),
    ],
)
def test_a_switch_of_another_name_is_set(name: str, off: dict[str, Any], on: dict[str, Any]) -> None:
    is_off = name if off[name] else f"{name} is defined and not {name}"
    variables, efforts = efforts_of(f"{{%- if {is_off} %}}<think></think>{{%- endif %}}")
    assert (variables["none"], variables["low"]) == (off, on)
    assert efforts == ("none", "medium")


def test_a_switch_of_another_name_that_is_usually_off_is_set() -> None:
    variables, efforts = efforts_of("{{ '<think>' if use_reasoning else '<think></think>' }}{{ 'x' if keep_thinking else '' }}")
    assert (variables["none"], variables["low"]) == ({}, {"use_reasoning": True})
    assert efforts == ("none", "medium")


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
        ("{{ 'Budget: ' ~ thinking_budget }}", "low", {"thinking_budget": 1024}),
        ("{{ 'Budget: ' ~ thinking_budget }}", "medium", {"thinking_budget": 4096}),
        ("{{ 'Budget: ' ~ thinking_budget }}", "high", {}),
        ("{{ 'Be short.' if low_effort else '' }}", "low", {"low_effort": True}),
        ("{%- set reasoning_effort = 'high' %}{{ reasoning_effort }}", "low", {}),
    ],
)
def test_other_variables_are_set_where_the_template_reads_them(end: str, effort: str, expected: dict[str, Any]) -> None:
    assert efforts_of(end)[0][effort] == expected


def test_a_medium_effort_is_not_the_most() -> None:
    variables, efforts = efforts_of("{{ reasoning_effort if reasoning_effort in ['low', 'high'] else 'max' }}")
    assert [variables[effort] for effort in ("medium", "max")] == [{"reasoning_effort": "high"}, {"reasoning_effort": "max"}]
    assert efforts == ("low", "medium", "xhigh")
    brief, _ = efforts_of("{{ 'Be brief.' if reasoning_effort == 'low' else 'Think.' if reasoning_effort == 'high' else '' }}")
    assert brief["medium"] == {}


# The template of Nemotron Nano v2 in short: a message switches the reasoning, and the switch is not shown.
TEXT_SWITCH = """{%- set ns = namespace(thinks=true) %}{%- for message in messages %}
{%- if '/no_think' in message.content %}{%- set ns.thinks = false %}{%- endif %}
{{- '<|im_start|>' + message.role + '\n' + message.content.replace('/no_think', '') + '<|im_end|>\n' }}{%- endfor %}
{{- '<|im_start|>assistant\n' + ('<think>\n' if ns.thinks else '<think></think>') }}"""


def test_a_text_of_the_system_message_switches_the_reasoning_off() -> None:
    dialect = chat(TEXT_SWITCH, may_think=True)
    assert dialect.efforts == ("none", "medium")
    prompts = [dialect.token_text(dialect.render(turn(effort=effort, tools=()))) for effort in (None, "none", "medium")]
    assert [prompt.endswith("<think></think>") for prompt in prompts] == [False, True, False]
    ruled = dialect.token_text(dialect.render(turn(effort="none", tools=(), instructions="Be brief.")))
    assert "Be brief." in ruled
    assert ruled.endswith("<think></think>")


@pytest.mark.parametrize("end", ["{{ '<think></think>' if enable_thinking is false else '' }}", "<think>"])
def test_a_text_is_no_switch_where_a_variable_is_or_the_template_does_not_read_it(end: str) -> None:
    dialect = chat(CHATML + "{#- /no_think -#}" + end, may_think=True)
    assert "/no_think" not in dialect.token_text(dialect.render(turn(effort="none")))


def test_no_effort_is_not_off() -> None:
    """The template of Step 3.7 shows the effort if there is any, and always reasons."""
    _, efforts = efforts_of("{{ 'Reasoning: ' + reasoning_effort if reasoning_effort is defined else '' }}<think>")
    assert efforts == ("low", "medium", "high")


@pytest.mark.parametrize("filter_name", ["upper", "capitalize"])
def test_an_effort_may_be_printed_in_other_letters(filter_name: str) -> None:
    variables, _ = efforts_of(f"{{{{ thinking_level | default('medium') | {filter_name} }}}}")
    assert variables["low"] == {"thinking_level": "low"}


def test_a_template_that_knows_no_efforts_has_one() -> None:
    variables, efforts = efforts_of("<think>")
    assert not any(variables.values())
    assert efforts == ("medium",)


def test_the_prompt_of_a_turn_has_its_effort() -> None:
    dialect = chat(CHATML + "Effort: {{ reasoning_effort | default('usual') }}")
    prompts = [dialect.token_text(dialect.render(turn(effort=effort))) for effort in (None, "low", "high")]
    assert [prompt.rpartition(": ")[2] for prompt in prompts] == ["usual", "low", "high"]
    assert dialect.efforts == ("none", "low", "medium", "high")
