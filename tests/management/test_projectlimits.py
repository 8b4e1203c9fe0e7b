"""`manage.py projectlimits` and the table of prices."""

from __future__ import annotations

import io

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.test import override_settings

from project.model_limits import Price, parse_prices
from responses_app.models import ApiKey, AuditEntry, Project


def project_limits(*arguments: str) -> list[str]:
    out = io.StringIO()
    call_command("projectlimits", *arguments, stdout=out)
    return out.getvalue().splitlines()


@pytest.mark.django_db
def test_limits_are_set_printed_and_removed() -> None:
    lines = project_limits("lab", "--tokens-per-minute", "1000", "--spend-per-month", "2.5", "--tool-calls-per-day", "7")
    assert {"tokens per minute: 1000", "tool calls per day: 7", "storage mib: no limit"} <= set(lines)
    project = Project.objects.get(name="lab")
    assert (project.tokens_per_minute, float(project.spend_per_month or 0), project.tool_calls_per_day) == (1000, 2.5, 7)
    assert "tokens per minute: no limit" in project_limits("lab", "--tokens-per-minute", "0")
    with pytest.raises(CommandError, match="tokens_per_day: "):
        project_limits("lab", "--tokens-per-day", "many")
    project_limits("other")
    assert not Project.objects.filter(name="other").exists(), "a command that prints makes no project"
    assert list(AuditEntry.objects.order_by("pk").values_list("actor_kind", "action", "project", "object")) == [
        ("command", "project.create", "lab", "project lab: tokens_per_minute, spend_per_month, tool_calls_per_day"),
        ("command", "project.change", "lab", "project lab: tokens_per_minute"),
    ]


@pytest.mark.django_db
def test_lists_of_models_and_tools_are_set_and_removed() -> None:
    lines = project_limits("lab", "--model", "a", "--model", "b", "--tool", "web_search")
    assert {"allowed models: a, b", "allowed tools: web_search"} <= set(lines)
    lines = project_limits("lab", "--model", "0", "--tokens-per-day", "9")
    assert {"allowed models: no limit", "allowed tools: web_search"} <= set(lines)
    assert Project.objects.get(name="lab").allowed_models == []
    with pytest.raises(CommandError, match=r"must be one of code_interpreter, .* not 'gone'"):
        project_limits("lab", "--tool", "gone")


@pytest.mark.django_db
def test_limits_without_an_effect_are_warnings() -> None:
    def warnings(name: str) -> str:
        errors = io.StringIO()
        call_command("projectlimits", name, "--spend-per-month", "2", stdout=io.StringIO(), stderr=errors)
        return errors.getvalue()

    ApiKey.make("key", project="lab")
    with override_settings(RESPONSES_PRICES={}):
        assert "RESPONSES_PRICES is empty" in warnings("lab")
    with override_settings(RESPONSES_PRICES=parse_prices("PRICES", '{"m": {"input": 1, "output": 1}}')):
        assert not warnings("lab")
        assert "The project 'alb' has no key and no member." in warnings("alb")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"m": 1}', "must be an object, such as"),
        ('{"m": {"input": 1}}', "'output' is missing"),
        ('{"m": {"input": -1, "output": 1}}', "'input' must be a number from 0"),
        ('{"m": {"input": 1, "output": true}}', "'output' must be a number from 0"),
        ('{"m": {"input": 1, "output": 1, "ouput": 1}}', "ouput"),
    ],
)
def test_a_wrong_price_is_named(text: str, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^PRICES.*{problem}"):
        parse_prices("PRICES", text)


def test_cached_input_costs_as_much_as_other_input_by_default() -> None:
    assert parse_prices("PRICES", '{"m": {"input": 2, "output": 3}}') == {"m": Price(2, 2, 3)}
