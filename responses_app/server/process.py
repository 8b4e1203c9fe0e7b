"""What the kernel offers so that no process outlives the one that started it (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
SIGKILL_LIMIT = 3.0


def die_with_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send us `number` when the thread that started us ends; at once, if `parent` has ended already."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent dies, so that `end_descendants` finds it."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def descendants(root: int) -> list[int]:
    """Process ids of all that `root` started, directly or not, parents first; zombies are left out."""
    children: dict[int, list[int]] = {}
    for pid, parent, state in _processes():
        if state != "Z":
            children.setdefault(parent, []).append(pid)
    found, queue = [], [root]
    while queue:
        queue += children.get(queue[0], [])
        found += children.get(queue.pop(0), [])
    return found


def end_descendants(root: int) -> list[int]:
    """SIGKILL everything below `root` until nothing is left or the limit has passed; returns what was killed."""
    killed: list[int] = []
    deadline = time.monotonic() + SIGKILL_LIMIT
    while (alive := descendants(root)) and time.monotonic() < deadline:
        for pid in alive:
            _kill(pid)
        killed += [pid for pid in alive if pid not in killed]
        reap()
        time.sleep(0.02)
    return killed


def reap() -> None:
    """Collect the children that have ended, adopted ones included."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _processes() -> Iterable[tuple[int, int, str]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            # The command name stands in parentheses and may hold anything, spaces and parentheses included.
            state, parent = stat.rpartition(")")[2].split()[:2]
            yield int(folder.name), int(parent), state


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl {option}")
