"""Sees to it that no child process outlives the server, even when the server dies by SIGKILL.

vLLM's core and its workers live on when their parent is killed, and so does a postmaster. Nothing that runs in the dying
process can help then, so `adopt` starts a second, tiny process that waits for the end of the first and then ends everything
that bears its mark. The mark is an environment variable: it passes to children and grandchildren, through new sessions and
changes of user, where process groups, PR_SET_PDEATHSIG (which fires with the creating thread) and pipes (which forked
children keep open) do not reach. Linux only. This file is also the program of the second process: standard library alone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "RESPONSES_OWNER"
GRACE_S = 1.0  # Between the polite signal and SIGKILL.
SWEEP_S = 3.0  # A sweep takes no longer, as a start waits for it.
STUBBORN_S = 60.0  # The guard itself has time: on a busy machine even the killed take theirs.
POLL_S = 0.05

# What multiprocessing makes here outlives those who have it open. Its tracker would remove it, but is killed with the others.
SHARED = ("/dev/shm/psm_", "/dev/shm/sem.mp-")  # noqa: S108 - names to look for

# Postgres reads SIGTERM as "when the last client has left", SIGINT as "now".
POLITE = {"postgres": signal.SIGINT}


class ProcessOwner(NamedTuple):
    """Who started a process: pid and start time name a process for good, as pids are used again."""

    pid: int
    start: int
    space: str  # The pid namespace: the numbers of another container mean nothing here.
    data_dir: str

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.space}:{self.data_dir}"

    @classmethod
    def parse(cls, text: str) -> ProcessOwner | None:
        pid, _, rest = text.partition(":")
        start, _, rest = rest.partition(":")
        space, _, data_dir = rest.partition(":")
        return cls(int(pid), int(start), space, data_dir) if pid.isdigit() and start.isdigit() else None

    def lives(self) -> bool:
        return _start_of(self.pid) == self.start


_adopted: ProcessOwner | None = None


def guard_children(data_dir: str | Path = "") -> None:
    """Bind the life of all processes started from now on to this one. Call once, before the first child is started.

    `data_dir` is what `sweep` recognises them by after a crash of both this process and its guard.
    """
    global _adopted
    if _adopted and _adopted.pid == os.getpid():
        return
    _adopted = ProcessOwner(os.getpid(), _start_of(os.getpid()), _space(), _name(data_dir))
    # setproctitle, as used by vLLM, writes titles over the environment that /proc shows, unless told not to.
    os.environ["SPT_NOENV"] = "1"
    os.environ[MARK] = str(_adopted)
    env = {name: value for name, value in os.environ.items() if name != MARK}
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    command = [sys.executable, "-I", "-S", __file__, str(_adopted)]
    # A session of its own: neither Ctrl-C nor a signal to the process group may take the guard along.
    os.posix_spawn(sys.executable, command, env, file_actions=null, setsid=True)


def kill_orphans(data_dir: str | Path) -> list[int]:
    """End what earlier, dead owners of the same data directory, or of one below it, have left; returns the pids.

    Takes at most SWEEP_S.
    """
    name, space = _name(data_dir), _space()
    return _terminate(lambda owner: _within(owner.data_dir, name) and owner.space == space and not owner.lives(), SWEEP_S)


def shared_memory(pid: int) -> set[str]:
    """The shared memory that a process has from multiprocessing, as files."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {path for line in lines if (path := line.partition("/")[1] + line.partition("/")[2]).startswith(SHARED)}


def free(segments: Iterable[str]) -> None:
    """Remove the shared memory of processes that are dead."""
    for path in segments:
        with suppress(OSError):
            os.unlink(path)


def survivors(owner_pid: int) -> list[int]:
    """The pids that bear the mark of that process."""
    return [pid for pid, owner in _marked() if owner.pid == owner_pid]


def _terminate(condemned: Callable[[ProcessOwner], bool], limit_s: float) -> list[int]:
    """Signal politely, then kill, until nothing condemned is left; looks again each time, as the dying may still start others.

    When the time is over the last round has killed, however long a round takes on a busy machine.
    """
    began, age = time.monotonic(), 0.0
    asked: dict[int, None] = {}
    shared: set[str] = set()
    while age < limit_s and (victims := [pid for pid, owner in _marked() if condemned(owner) and pid != os.getpid()]):
        age = time.monotonic() - began
        for pid in victims:
            if age >= GRACE_S:
                _signal(pid, signal.SIGKILL, condemned)
            elif pid not in asked:
                shared |= shared_memory(pid)
                _signal(pid, POLITE.get(_comm(pid), signal.SIGTERM), condemned)
            asked[pid] = None
        time.sleep(POLL_S)
    free(shared)
    return list(asked)


def _signal(pid: int, number: int, condemned: Callable[[ProcessOwner], bool]) -> None:
    """Signal the process if it still is the one that was condemned: the descriptor holds the pid while we look again."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        owner = _owner_of(pid)
        if owner and condemned(owner):
            signal.pidfd_send_signal(fd, number)
    except OSError:  # It went in the meantime, or belongs to somebody else.
        pass
    finally:
        os.close(fd)


def _marked() -> Iterator[tuple[int, ProcessOwner]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (owner := _owner_of(int(entry))):
            yield int(entry), owner


def _owner_of(pid: int) -> ProcessOwner | None:
    """Whose mark a process bears. A dead one that nobody has waited for shows no environment, hence none."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = f"{MARK}=".encode()
    found = next((entry for entry in environ.split(b"\0") if entry.startswith(prefix)), None)
    return ProcessOwner.parse(os.fsdecode(found[len(prefix) :])) if found else None


def _start_of(pid: int) -> int:
    """When a process was started, in clock ticks since boot; -1 if it is dead, waited for or not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    # The name, in parentheses, may hold anything; behind it come the state (field 3) and, as field 22, the start time.
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _space() -> str:
    return os.readlink("/proc/self/ns/pid").strip("pid:[]")


def _name(data_dir: str | Path) -> str:
    return str(Path(data_dir).resolve()) if data_dir else ""


def _within(data_dir: str, name: str) -> bool:
    return data_dir == name or data_dir.startswith(f"{name}/")


def _wait_exit(owner: ProcessOwner) -> None:
    """Return when the owner is dead."""
    try:
        fd = os.pidfd_open(owner.pid)
    except OSError:
        return
    if owner.lives():  # Else the pid is already somebody else's.
        waiter = select.poll()
        waiter.register(fd, select.POLLIN)
        waiter.poll()


def _main() -> None:
    owner = ProcessOwner.parse(sys.argv[1])
    if owner:
        _wait_exit(owner)
        _terminate(lambda other: other == owner, STUBBORN_S)


if __name__ == "__main__":
    _main()
