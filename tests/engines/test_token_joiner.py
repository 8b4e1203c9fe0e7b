"""Requests take their tokens together while the process is busy, and at once otherwise."""

from __future__ import annotations

from responses_app.engines.token_joiner import BUSY_SHARE, QUIET_SHARE, TICK_S, WINDOW_S, TokenJoiner


class JoinTimes:
    """Clock and CPU time of a process that a test moves on."""

    def __init__(self) -> None:
        self.now = self.used = 0.0
        self.joiner = TokenJoiner(lambda: self.now, lambda: self.used)

    def pass_window(self, share: float) -> float:
        """Let a window pass in which the process used `share` of a core. Return the pause at the end."""
        self.now += WINDOW_S
        self.used += share * WINDOW_S
        return self.joiner.pause_s()


def test_idle_process_waits_for_nothing() -> None:
    times = JoinTimes()
    assert [times.pass_window(BUSY_SHARE - 0.01) for _ in range(3)] == [0.0, 0.0, 0.0]


def test_busy_process_waits_for_the_next_tick() -> None:
    times = JoinTimes()
    times.pass_window(BUSY_SHARE + 0.01)
    for _ in range(50):
        pause_s = times.joiner.pause_s()
        assert 0 < pause_s <= TICK_S
        ticks = (times.now + pause_s) / TICK_S
        assert abs(ticks - round(ticks)) < 1e-6
        times.now += 0.0007


def test_joining_that_halves_the_work_goes_on() -> None:
    times = JoinTimes()
    times.pass_window(BUSY_SHARE + 0.01)
    assert times.pass_window(BUSY_SHARE / 2) > 0
    assert times.pass_window(QUIET_SHARE - 0.01) == 0.0
    assert times.pass_window(BUSY_SHARE - 0.01) == 0.0
