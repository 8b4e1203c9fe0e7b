"""Durations in settings and command-line options."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from project.env import READ, envduration
from responses_app.utils.durations import describe_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("30m", 1800), ("12h", 43200), ("7d", 604800), ("0d", 0), ("36500d", 3153600000), ("off", None), ("", None)],
)
def test_an_age_is_a_number_and_its_unit(text: str, seconds: int | None) -> None:
    assert parse_duration(text) == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("10m", "10 minutes"),
        ("60m", "1 hour"),
        ("36h", "36 hours"),
        ("90d", "90 days"),
        ("1s", "1 second"),
        ("0d", "0 seconds"),
    ],
)
def test_a_duration_is_described_in_one_unit(text: str, description: str) -> None:
    age = parse_duration(text)
    assert age is not None
    assert describe_duration(age) == description


@pytest.mark.parametrize("text", ["7", "d", "-1d", "7 d", "1.5h", "7w", "9999999d", "٧d2", "36501d", "999999d"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="such as 7d"):
        parse_duration(text)


def test_a_setting_may_have_a_unit_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_AGE", "15")
    try:
        assert envduration("SOME_AGE", "", unit="s") == timedelta(seconds=15)
        with pytest.raises(ImproperlyConfigured, match="SOME_AGE must be an age such as 7d"):
            envduration("SOME_AGE", "")
    finally:
        del READ["SOME_AGE"]
