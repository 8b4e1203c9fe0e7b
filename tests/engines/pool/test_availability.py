"""Availability of an engine, by a manual clock."""

from __future__ import annotations

from responses_app.engines.pool.member import IDLE_CHECK_S, PAUSES_S, Availability
from tests.support.manual_clock import ManualClock


def pause(availability: Availability, clock: ManualClock) -> float:
    """Return the seconds until the next health check, found by moving the clock."""
    began_s = clock.now_s
    while not availability.is_due:
        clock.now_s += 0.25
    return clock.now_s - began_s


def test_engine_is_checked_at_once_and_then_while_idle() -> None:
    clock = ManualClock()
    availability = Availability(clock)
    assert availability.is_due
    assert not availability.is_up
    availability.restore()
    assert availability.is_up
    assert pause(availability, clock) == IDLE_CHECK_S


def test_pauses_grow_until_the_engine_answers_a_request() -> None:
    clock = ManualClock()
    availability = Availability(clock)
    pauses_s = []
    for _ in range(len(PAUSES_S) + 1):
        availability.fail()
        assert not availability.is_up
        pauses_s.append(pause(availability, clock))
        availability.restore()  # A server may pass health checks and fail every request.
    assert pauses_s == [*PAUSES_S, PAUSES_S[-1]]
    availability.answer()
    availability.fail()
    assert pause(availability, clock) == PAUSES_S[0]
