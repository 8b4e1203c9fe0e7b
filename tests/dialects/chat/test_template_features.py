"""Probing of chat templates: inputs that a template renders, and inputs that it drops or rejects."""

from __future__ import annotations

import pytest

from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.chat.template_features import TemplateFeatures, template_features
from tests.support.dialects.parser_driver import CHATML, OPENING

PLAIN = "{% for message in messages %}[{{ message.role }}] {{ message.content }}{% endfor %}"
CALL_BY_NAME = (
    "{% for call in message.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments | tojson }}{% endfor %}"
)
FIRST_CALL = "{% if message.tool_calls %}{{ message.tool_calls[0].function.arguments | tojson }}{% endif %}"
TEXT_OR_CALL = (
    "{% for message in messages %}{% if message.tool_calls %}"
    + CALL_BY_NAME
    + "{% else %}{{ message.content }}{% endif %}{% endfor %}"
)
REASONING = "{% for message in messages %}{{ message.reasoning_content }}{{ message.content }}" + CALL_BY_NAME + "{% endfor %}"
STRICT = PLAIN.replace("[{{", "{% if message.role == 'system' %}{{ raise_exception('No system.') }}{% endif %}[{{")


def features(template: str) -> TemplateFeatures:
    return template_features(ChatTemplate(template))


@pytest.mark.parametrize(
    ("template", "missing"),
    [
        (
            PLAIN,
            ["tools", "calls of earlier turns", "several calls of a turn", "text beside a call", "reasoning before a call"],
        ),
        (
            STRICT,
            [
                "system messages",
                "tools",
                "calls of earlier turns",
                "several calls of a turn",
                "text beside a call",
                "reasoning before a call",
            ],
        ),
        ("{{ tools | tojson }}" + TEXT_OR_CALL, ["text beside a call", "reasoning before a call"]),
        ("{{ tools | tojson }}" + REASONING, []),
        (
            "{{ tools | tojson }}" + REASONING.replace(CALL_BY_NAME, FIRST_CALL),
            ["several calls of a turn"],
        ),
        (CHATML, []),
    ],
    ids=["plain", "no_system", "text_or_call", "complete", "one_call", "chatml"],
)
def test_inputs_without_a_place_in_the_template_are_found(template: str, missing: list[str]) -> None:
    assert [name for name in features(template).missing() if name != "images"] == missing


def test_a_template_that_rejects_everything_has_no_features() -> None:
    assert not features("{{ raise_exception('No.') }}").system
    assert features("{{ raise_exception('No.') }}").missing()[0] == "system messages"


@pytest.mark.parametrize(
    ("template", "variables", "can_switch", "opens"),
    [
        (PLAIN, (), False, False),
        (PLAIN + "<think>\n", (), False, True),
        (PLAIN + "{% if enable_thinking is false %}<think></think>{% endif %}", ("enable_thinking",), True, False),
        (PLAIN + "{% if thinking %}[THINK]{% endif %}", ("thinking",), True, True),
        (PLAIN + "{{ reasoning_effort }}", ("reasoning_effort",), False, False),
        (PLAIN + "<seed:think>{{ thinking_budget }}", ("thinking_budget",), False, True),
    ],
    ids=["none", "opened", "enable_thinking", "thinking", "effort", "budget"],
)
def test_the_switch_of_the_reasoning_is_found(template: str, variables: tuple[str, ...], can_switch: bool, opens: bool) -> None:
    detected = features(template)
    assert (detected.thinking_variables, detected.can_switch_thinking, detected.opens_thinking) == (
        variables,
        can_switch,
        opens,
    )


def test_an_opened_reasoning_is_found() -> None:
    assert features(OPENING).opens_thinking
