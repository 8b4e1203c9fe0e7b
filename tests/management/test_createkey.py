"""`manage.py createkey` with the limits that projects have too."""

from __future__ import annotations

import io

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from responses_app.management.commands import projectlimits
from responses_app.management.commands.createkey import USAGE_LIMITS
from responses_app.models import ApiKey


@pytest.mark.django_db
@override_settings(RESPONSES_PRICES={})
def test_key_has_the_limits_of_the_options() -> None:
    out, errors = io.StringIO(), io.StringIO()
    options = ("--tokens-per-minute=1000", "--tokens-per-day=5000", "--spend-per-month=2.5", "--tool-calls-per-day=7")
    call_command("createkey", "ci", *options, "--retention-days=30", stdout=out, stderr=errors)
    key = ApiKey.find(out.getvalue().strip())
    assert key is not None
    values = [float(getattr(key, name)) for name in USAGE_LIMITS]
    assert values == [1000, 5000, 2.5, 7, 30]
    assert {limit.scope for limit in key.counted_limits} == {"key"}
    assert "RESPONSES_PRICES is empty" in errors.getvalue()
    assert {*projectlimits.FIELDS} - {*USAGE_LIMITS} == {"storage_mib"}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("option", "problem"),
    [
        ("--tokens-per-minute=0", "tokens_per_minute: Ensure this value is greater than or equal to 1"),
        ("--spend-per-month=-1", "spend_per_month: Ensure this value is greater than or equal to 0.01"),
        ("--spend-per-month=1.234", "spend_per_month: Ensure that there are no more than 2 decimal places"),
        ("--retention-days=many", "retention_days: .*must be an integer"),
    ],
)
def test_wrong_limit_is_named_and_makes_no_key(option: str, problem: str) -> None:
    with pytest.raises(CommandError, match=problem):
        call_command("createkey", "ci", option)
    assert not ApiKey.objects.filter(name="ci").exists()
