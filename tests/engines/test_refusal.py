"""Pause after a refusal, by a manual clock."""

from __future__ import annotations

import pytest

from responses_app.engines.refusal import MAX_REFUSAL_S, REFUSAL_S, Refusal
from tests.support.manual_clock import ManualClock


@pytest.mark.parametrize(("named_s", "expected_s"), [(None, REFUSAL_S), (7.0, 7.0), (3600.0, MAX_REFUSAL_S)])
def test_refusal_ends_with_its_time(named_s: float | None, expected_s: float) -> None:
    clock = ManualClock()
    refusal = Refusal(clock)
    assert refusal.left_s == 0
    refusal.begin(named_s)
    assert refusal.left_s == expected_s
    clock.now_s += expected_s
    assert refusal.left_s == 0
