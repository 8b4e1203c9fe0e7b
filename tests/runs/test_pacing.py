"""Pacing of background work: an idle process goes on, a busy process waits, a stop ends every pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from unittest import mock

from responses_app.runs import pacing
from responses_app.runs.pacing import Pacing


def paused(
    used: Callable[[float], float], *, pauses: int = 1, busy_wait_s: float = 1.0, stopped: bool = False
) -> tuple[bool, float]:
    """Pause several times, with a clock of CPU time: `used` are the CPU seconds up to a time. Return also the seconds waited."""
    waited, stop = 0.0, threading.Event()
    if stopped:
        stop.set()

    def wait(seconds: float) -> bool:
        nonlocal waited
        waited += seconds
        return stop.is_set()

    # Of the CPU time of the process, 10 s are those of the thread itself.
    clocks = {"monotonic": lambda: waited, "process_time": lambda: 10.0 + used(waited), "thread_time": lambda: 10.0}
    with (
        mock.patch.object(pacing, "time", mock.Mock(spec=time, **clocks)),
        mock.patch.object(pacing, "MAX_BUSY_WAIT_S", busy_wait_s),
        mock.patch.object(stop, "wait", wait),
    ):
        paces = Pacing(stop)
        return [paces.pause() for _ in range(pauses)][-1], waited


def in_bursts(seconds: float) -> float:
    """Return the CPU seconds of a process that computes in the first 8 of every 20 ms."""
    whole, remaining_s = divmod(seconds, 0.02)
    return 0.008 * whole + min(remaining_s, 0.008)


def test_first_pause_of_an_idle_process_is_a_measurement() -> None:
    goes_on, waited = paused(lambda s: 0.1 * s)
    assert goes_on
    assert waited <= pacing.MIN_PAUSE_S + pacing.WINDOW_S


def test_idle_process_pauses_as_long_as_the_step() -> None:
    _, first = paused(lambda s: 0.1 * s)
    _, waited = paused(lambda s: 0.1 * s, pauses=11)
    assert round(waited - first, 6) == 10 * pacing.MIN_PAUSE_S


def test_busy_process_waits_up_to_the_limit() -> None:
    for used in (lambda s: 0.9 * s, in_bursts):
        goes_on, waited = paused(used, pauses=3)
        assert goes_on
        assert 1.0 <= waited <= 1.0 + 3 * pacing.WINDOW_S


def test_stop_ends_the_wait_of_a_busy_process() -> None:
    assert paused(lambda s: 0.9 * s, busy_wait_s=100.0, stopped=True) == (False, pacing.MIN_PAUSE_S)
