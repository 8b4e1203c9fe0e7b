"""Processes of a server: the descendants, and processes that are left after the end."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from responses_app.server.supervision.process_tree import descendants
from tests.support.waiting import WaitTimeout, wait_until

# Seconds.
END_LIMIT_S = 60
# A fifth of one core.
IDLE_POLL_S, IDLE_CPU_S = 0.5, 0.1


def process_identity(pid: int) -> tuple[int, str]:
    """Return a process id with its start time, since process ids are reused; the time is empty for a dead process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return pid, ""
    return pid, "" if fields[0] in "ZX" else fields[19]


def is_alive(process: psutil.Process) -> bool:
    """Return True unless the process has ended."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def family(root: int) -> set[tuple[int, str]]:
    return {process_identity(pid) for pid in [root, *descendants(root)]}


def left(family: Iterable[tuple[int, str]]) -> list[str]:
    """Wait until all of `family` have ended, at most `END_LIMIT_S`; return the command lines of those that have not."""
    processes = [(pid, start) for pid, start in family if start]

    def alive() -> list[int]:
        return [pid for pid, start in processes if process_identity(pid)[1] == start]

    with suppress(WaitTimeout):
        wait_until(lambda: not alive(), limit_s=END_LIMIT_S, poll_s=0.05)
    return [_command(pid) for pid in alive()]


def wait_until_idle(pid: int) -> None:
    """Wait until the process has used little CPU time for half a second."""
    process, seconds = psutil.Process(pid), [0.0]

    def is_idle() -> bool:
        times = process.cpu_times()
        seconds.append(times.user + times.system)
        return seconds[-1] - seconds[-2] < IDLE_CPU_S

    wait_until(is_idle, poll_s=IDLE_POLL_S)


def named(root: int, word: str) -> int:
    """Return the first descendant with that word in the command line."""
    return next(iter(all_named(root, word)))


def all_named(root: int, *words: str) -> list[int]:
    """Return all descendants with any of these words in the command line."""
    return [pid for pid in descendants(root) if any(word in _command(pid) for word in words)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def send_to_all(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to processes, of which some may have ended: a process of Postgres ends with its connection."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
