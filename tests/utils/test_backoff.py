"""Back-off: the pauses grow, the last one repeats, and a reset starts with the first one again."""

from __future__ import annotations

from responses_app.utils.backoff import Backoff


def test_pauses_grow_and_the_last_one_repeats() -> None:
    backoff = Backoff((0.5, 1.0, 2.0))
    assert [backoff.next_pause_s() for _ in range(5)] == [0.5, 1.0, 2.0, 2.0, 2.0]
    assert backoff.failures == 5


def test_a_reset_starts_with_the_first_pause_again() -> None:
    backoff = Backoff((0.5, 1.0))
    backoff.next_pause_s()
    backoff.reset()
    assert backoff.failures == 0
    assert backoff.next_pause_s() == 0.5
