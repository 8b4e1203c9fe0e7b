"""Orphan guard: ends all child processes when the server ends, even by SIGKILL.

vLLM's core, its workers and the Postgres postmaster continue when their parent is killed. No code of the killed process can run
then. `guard_children` therefore starts a small second process, which waits for the end of the first and then ends all processes
with its mark.

The mark is an environment variable. Children and grandchildren inherit it, through new sessions and changes of user. Process
groups do not reach that far, nor does PR_SET_PDEATHSIG (the signal fires with the creating thread), nor pipes (forked children keep
them open). Linux only. This file is also the program of the second process and imports the standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MARK = "RESPONSES_OWNER"
GRACE_S = 1.5  # Time between the first signal and SIGKILL.
SWEEP_LIMIT_S = 3.0  # Limit of `kill_orphans`, which delays the start of the server.
GUARD_LIMIT_S = 60.0  # Limit of the guard: on a busy machine even killed processes take seconds to end.
POLL_S = 0.05
SHARED_MEMORY_POLL_S = 10

# Shared memory of multiprocessing outlives its users. Its resource tracker would remove it, but is killed as well.
SHARED_MEMORY_PREFIXES = ("/dev/shm/psm_", "/dev/shm/sem.mp-")  # noqa: S108 - names to look for

# Postgres ends on SIGTERM after the last client has left, on SIGINT at once.
FIRST_SIGNALS = {"postgres": signal.SIGINT}


class ProcessOwner(NamedTuple):
    """The server process at the root of a process tree. Pids are reused, so the start time is part of the identity."""

    pid: int
    start: int
    namespace: str  # The pid namespace: pids of another container are unrelated.
    data_dir: str

    def __str__(self) -> str:
        return f"{self.pid}:{self.start}:{self.namespace}:{self.data_dir}"

    @classmethod
    def parse(cls, text: str) -> ProcessOwner | None:
        """Parse the value of the environment variable; None for invalid text."""
        pid, _, after_pid = text.partition(":")
        start, _, after_pid = after_pid.partition(":")
        space, _, data_dir = after_pid.partition(":")
        return cls(int(pid), int(start), space, data_dir) if pid.isdigit() and start.isdigit() else None

    def is_alive(self) -> bool:
        """Return True while the process runs."""
        return _start_of(self.pid) == self.start


_owner: ProcessOwner | None = None


def guard_children(data_dir: str | Path = "") -> None:
    """Bind the life of all later child processes to the server process. Call before the first child is started."""
    global _owner
    if _owner and _owner.pid == os.getpid():
        return
    _owner = ProcessOwner(os.getpid(), _start_of(os.getpid()), _pid_namespace(), _name(data_dir))
    # vLLM uses setproctitle, which without this setting overwrites the environment shown in /proc.
    os.environ["SPT_NOENV"] = "1"
    os.environ[MARK] = str(_owner)
    env = {name: value for name, value in os.environ.items() if name != MARK}
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    command = [sys.executable, "-I", "-S", __file__, str(_owner)]
    # A separate session: neither Ctrl-C nor a signal to the process group reaches the guard.
    os.posix_spawn(sys.executable, command, env, file_actions=null, setsid=True)


def mark() -> dict[str, str]:
    """Return the environment variable that marks child processes whose environment this process makes; empty without a guard."""
    return {MARK: os.environ[MARK]} if MARK in os.environ else {}


def kill_orphans(data_dir: str | Path) -> list[int]:
    """End the processes left by dead servers with `data_dir`, or a directory below; return the pids."""
    return _end_owned(_is_dead_with(data_dir), SWEEP_LIMIT_S)


def has_orphans(data_dir: str | Path) -> bool:
    """Return True while processes of a dead server with `data_dir` run; its guard is ending them."""
    is_dead = _is_dead_with(data_dir)
    return any(is_dead(owner) for _, owner in _marked())


def shared_memory(pid: int) -> set[str]:
    """Return the paths of the multiprocessing shared memory mapped by a process."""
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines()
    except OSError:
        return set()
    return {
        path for line in lines if (path := line.partition("/")[1] + line.partition("/")[2]).startswith(SHARED_MEMORY_PREFIXES)
    }


def unlink_shared_memory(segments: Iterable[str]) -> None:
    """Remove the shared memory of dead processes."""
    for path in segments:
        with suppress(OSError):
            os.unlink(path)


def survivors(owner_pid: int) -> list[int]:
    """Return the pids of all processes started by `owner_pid` or by descendants."""
    return [pid for pid, owner in _marked() if owner.pid == owner_pid]


def terminate(
    find: Callable[[], Sequence[int]],
    send: Callable[[int, int], None],
    limit_s: float,
    after_round: Callable[[], object] | None = None,
) -> list[int]:
    """End all processes that `find` returns, for up to `limit_s` seconds; return the pids that were signalled.

    A process gets its first signal, and SIGKILL after GRACE_S. `find` runs before each round, since dying processes may start others.
    The last round kills, however long a round takes on a busy machine.
    """
    started_s, elapsed_s = time.monotonic(), 0.0
    signalled: dict[int, None] = {}
    shared: set[str] = set()
    while elapsed_s < limit_s and (victims := find()):
        elapsed_s = time.monotonic() - started_s
        for pid in victims:
            if elapsed_s >= GRACE_S:
                send(pid, signal.SIGKILL)
            elif pid not in signalled:
                shared |= shared_memory(pid)
                send(pid, FIRST_SIGNALS.get(_comm(pid), signal.SIGTERM))
            signalled[pid] = None
        time.sleep(POLL_S)
        if after_round is not None:
            after_round()
    unlink_shared_memory(shared)
    return list(signalled)


def _is_dead_with(data_dir: str | Path) -> Callable[[ProcessOwner], bool]:
    """Return the condition for dead owners with `data_dir`, or a directory below."""
    name, namespace = _name(data_dir), _pid_namespace()
    return lambda owner: _within(owner.data_dir, name) and owner.namespace == namespace and not owner.is_alive()


def _end_owned(is_selected: Callable[[ProcessOwner], bool], limit_s: float) -> list[int]:
    """End all processes whose owner `is_selected` selects."""
    return terminate(
        lambda: [pid for pid, owner in _marked() if is_selected(owner) and pid != os.getpid()],
        lambda pid, number: _signal(pid, number, is_selected),
        limit_s,
    )


def _signal(pid: int, number: int, is_selected: Callable[[ProcessOwner], bool]) -> None:
    """Signal the process if `is_selected` still selects the owner: an open pidfd prevents reuse of the pid."""
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        owner = _owner_of(pid)
        if owner and is_selected(owner):
            signal.pidfd_send_signal(fd, number)
    except OSError:  # The process ended meanwhile, or belongs to another user.
        pass
    finally:
        os.close(fd)


def _marked() -> Iterator[tuple[int, ProcessOwner]]:
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (owner := _owner_of(int(entry))):
            yield int(entry), owner


def _owner_of(pid: int) -> ProcessOwner | None:
    """Return the owner named in the environment of a process; None for zombies with an empty environment."""
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    prefix = f"{MARK}=".encode()
    assignment = next((entry for entry in environ.split(b"\0") if entry.startswith(prefix)), None)
    return ProcessOwner.parse(os.fsdecode(assignment[len(prefix) :])) if assignment else None


def _start_of(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; -1 for dead processes and zombies."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return -1
    # The name, in parentheses, may contain anything. The state (field 3) and the start time (field 22) follow it.
    fields = stat.rpartition(")")[2].split()
    return -1 if fields[0] in "ZX" else int(fields[19])


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    return os.readlink("/proc/self/ns/pid").strip("pid:[]")


def _name(data_dir: str | Path) -> str:
    return str(Path(data_dir).resolve()) if data_dir else ""


def _within(data_dir: str, name: str) -> bool:
    return data_dir == name or data_dir.startswith(f"{name}/")


def _wait_exit(owner: ProcessOwner) -> set[str]:
    """Wait until the owner is dead. Return the shared memory of the owner's processes.

    It is looked up while they run: vLLM's core ends by itself with the owner, on a busy machine before this process sees the end.
    """
    shared: set[str] = set()
    try:
        fd = os.pidfd_open(owner.pid)
    except OSError:
        return shared
    if owner.is_alive():  # Otherwise the pid was reused.
        waiter = select.poll()
        waiter.register(fd, select.POLLIN)
        while not waiter.poll(SHARED_MEMORY_POLL_S * 1000):
            shared = set(filter(os.path.exists, shared)).union(*map(shared_memory, survivors(owner.pid)))
    return shared


def _main() -> None:
    owner = ProcessOwner.parse(sys.argv[1])
    if owner:
        shared = _wait_exit(owner)
        _end_owned(lambda other: other == owner, GUARD_LIMIT_S)
        unlink_shared_memory(shared)


if __name__ == "__main__":
    _main()
