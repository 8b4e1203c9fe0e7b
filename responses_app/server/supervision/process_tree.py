"""Process trees on Linux: waiting for processes, and ending all descendants."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from responses_app.engines import orphan_guard

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LIMIT_S = 4.0


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
    process_ids = list(children.get(root, []))
    for pid in process_ids:  # Grows while we walk it.
        process_ids += children.get(pid, [])
    return process_ids


def end_descendants(root: int, spare: Container[int] = ()) -> list[int]:
    """End all descendants of `root` except `spare`, within LIMIT_S; return the pids that were signalled."""
    return orphan_guard.terminate(lambda: [pid for pid in descendants(root) if pid not in spare], _send, LIMIT_S, _reap)


def wait_for(pid: int) -> int:
    """Wait for the child `pid` and reap adopted orphans. Return the exit code, or the negative signal number."""
    while True:
        ended, status = os.waitpid(-1, 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)


async def first_ended(pids: Iterable[int]) -> int:
    """Wait until any of these processes has ended, children or not. Return the process id."""
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


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


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
