"""Process trees on Linux: waiting for processes, and ending all descendants."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from responses_app.engines import orphan_guard

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
GRACE = 1.5
LIMIT = 4.0
POLL = 0.02
# Signals for a fast shutdown: Postgres waits for clients after SIGTERM, but not after SIGINT.
POLITE = {"postgres": signal.SIGINT}


def die_with_parent(parent: int, number: signal.Signals = signal.SIGTERM) -> None:
    """Have the kernel send the signal `number` when the parent thread ends; at once if `parent` has ended already."""
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def adopt_orphans() -> None:
    """Become the parent of orphaned descendants, so that `end_descendants` finds all processes."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def descendants(root: int) -> list[int]:
    """Return the process ids of all descendants of `root`, parents first, without zombies."""
    children: dict[int, list[int]] = {}
    for pid, parent in _processes():
        children.setdefault(parent, []).append(pid)
    found = list(children.get(root, []))
    for pid in found:  # Grows while we walk it.
        found += children.get(pid, [])
    return found


def end_descendants(root: int, spare: Container[int] = ()) -> list[int]:
    """Terminate all descendants of `root`, and kill remaining processes after the limit. Return the terminated process ids.

    The last round kills, also on a busy machine where a round takes longer than the limit.
    """
    asked: list[int] = []
    shared: set[str] = set()
    began, age = time.monotonic(), 0.0
    while age < LIMIT and (alive := [pid for pid in descendants(root) if pid not in spare]):
        age = time.monotonic() - began
        for pid in alive:
            if age >= GRACE:
                _send(pid, signal.SIGKILL)
            elif pid not in asked:
                shared |= orphan_guard.shared_memory(pid)
                _send(pid, POLITE.get(_comm(pid), signal.SIGTERM))
        asked += [pid for pid in alive if pid not in asked]
        time.sleep(POLL)
        _reap()
    orphan_guard.unlink_shared_memory(shared)
    return asked


def wait_for(pid: int) -> int:
    """Wait for the child `pid` and reap adopted orphans. Return the exit code, or the negative signal number."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


async def first_ended(pids: Iterable[int]) -> int:
    """Wait until any of these processes has ended, children or not. Return its process id."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[int] = loop.create_future()
    watched: list[int] = []
    try:
        for pid in pids:
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                return pid
            watched.append(fd)
            loop.add_reader(fd, _settle, over, pid)
        return await over
    finally:
        for fd in watched:
            loop.remove_reader(fd)
            os.close(fd)


def command_line(pid: int) -> str:
    """Return the command line as `ps` shows, or an empty string for a dead process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def describe_exit(code: int) -> str:
    """Describe an exit code or a negative signal number."""
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _settle(over: asyncio.Future[int], pid: int) -> None:
    if not over.done():
        over.set_result(pid)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _processes() -> Iterator[tuple[int, int]]:
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path(f"/proc/{entry}/stat").read_text(errors="replace")
        except OSError:
            continue
        # The command name is in parentheses and may contain spaces and parentheses.
        state, parent = stat.rpartition(")")[2].split()[:2]
        if state not in "ZX":
            yield int(entry), int(parent)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option})")
