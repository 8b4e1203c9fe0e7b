"""Pacing of background work: an idle process goes on, a busy process waits, a stop ends every pause."""

from __future__ import annotations

import threading
import time
from unittest import mock

from responses_app.runs import pacing
from responses_app.runs.pacing import Pacing


def paused(share: float, *, busy_wait_s: float, stop: threading.Event) -> tuple[bool, float]:
    """Pause once, with a clock of CPU time that says that the process needs `share` of a core. Return also the seconds waited."""
    waited = 0.0

    def wait(seconds: float) -> bool:
        nonlocal waited
        waited += seconds
        return stop.is_set()

    clocks = {"monotonic": lambda: waited, "process_time": lambda: share * waited}
    with (
        mock.patch.object(pacing, "time", mock.Mock(spec=time, **clocks)),
        mock.patch.object(pacing, "MAX_BUSY_WAIT_S", busy_wait_s),
        mock.patch.object(stop, "wait", wait),
    ):
        return Pacing(stop).pause(), waited


def test_idle_process_pauses_as_long_as_the_step() -> None:
    assert paused(0.1, busy_wait_s=1.0, stop=threading.Event()) == (True, pacing.MIN_PAUSE_S)


def test_busy_process_waits_up_to_the_limit() -> None:
    goes_on, waited = paused(0.9, busy_wait_s=1.0, stop=threading.Event())
    assert goes_on
    assert 1.0 <= waited <= 1.0 + 2 * pacing.WINDOW_S


def test_stop_ends_the_wait_of_a_busy_process() -> None:
    stop = threading.Event()
    stop.set()
    assert paused(0.9, busy_wait_s=100.0, stop=stop) == (False, pacing.MIN_PAUSE_S)
