"""Processes of the containers, for the runner: memory, and suspension between runs."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

# Lines of proc_pid_status(5). The kernel escapes line breaks in the name of a process, which code can choose.
FIELDS = re.compile(rb"^(State|PPid|VmRSS|VmSwap|VmPTE):\s*(\w+)", re.MULTILINE)
# Rounds in which new processes of a container are found and stopped.
STOP_ROUNDS = 200
STOP_PAUSE_S = 0.005
MAX_STATUS_BYTES = 16_384
# State letters.
STOPPED, ENDED = "Tt", "ZX"


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """Row of /proc: process ids, state letter, and memory in bytes: resident, swapped out, and page tables.

    `thread` is the id of a thread that has memory. It is `pid` unless the main thread has ended before the others.
    """

    pid: int
    parent: int
    state: str
    memory: int
    page_tables: int
    thread: int


class ProcessTable:
    """All processes of the runner's namespace at a moment."""

    def __init__(self, entries: Iterable[ProcessEntry]) -> None:
        self._children: dict[int, list[ProcessEntry]] = {}
        for entry in entries:
            self._children.setdefault(entry.parent, []).append(entry)

    @classmethod
    def read(cls) -> ProcessTable:
        """Read /proc."""
        return cls(entry for name in os.listdir("/proc") if name.isdigit() and (entry := _read(name)) is not None)

    def descendants(self, root: int) -> list[ProcessEntry]:
        """Return the descendants of a process, parents first."""
        process_ids = list(self._children.get(root, ()))
        for entry in process_ids:  # The list grows during the loop.
            process_ids += self._children.get(entry.pid, ())
        return process_ids

    def memory(self, root: int) -> int:
        """Return the memory of the descendants in bytes. Shared pages count once per process."""
        return sum(entry.memory for entry in self.descendants(root))


def memory_in_use(table: ProcessTable, root: int, limit: int) -> int:
    """Return the bytes of the descendants of `root`. Above `limit` shared pages are divided among their processes.

    Call in a thread: the kernel counts pages only between copies of the page tables, and many processes that fork make that wait
    seconds.
    """
    memory = table.memory(root)
    if memory <= limit:
        return memory
    return sum(_proportional(entry) for entry in table.descendants(root))


def memory_in_use_now(root: int, limit: int) -> int:
    """Read /proc and return `memory_in_use`."""
    return memory_in_use(ProcessTable.read(), root, limit)


async def suspend(bwrap: int) -> bool:
    """Stop all processes of a container. Return False if new processes appear faster than the stops."""
    for _ in range(STOP_ROUNDS):
        running = [entry for entry in _container_processes(bwrap) if entry.state not in STOPPED + ENDED]
        if not running:
            return True
        _signal(running, signal.SIGSTOP)
        await asyncio.sleep(STOP_PAUSE_S)
    return False


def resume(bwrap: int) -> None:
    """Continue the processes of a container."""
    _signal(_container_processes(bwrap), signal.SIGCONT)


def container_pids(bwrap: int) -> list[int]:
    """Return the process ids below `bwrap`."""
    return [entry.pid for entry in ProcessTable.read().descendants(bwrap)]


def _container_processes(bwrap: int) -> list[ProcessEntry]:
    """Return the processes below the init process of the container, which is the child of `bwrap`."""
    return ProcessTable.read().descendants(bwrap)[1:]


def _signal(entries: Iterable[ProcessEntry], number: signal.Signals) -> None:
    for entry in entries:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(entry.pid, number)


def _read(name: str) -> ProcessEntry | None:
    entry = _read_status(f"/proc/{name}/status", int(name))
    if entry is None or entry.state not in ENDED:
        return entry
    # The main thread has ended: state and memory of the process are those of the other threads.
    threads = _living_threads(name)
    running = [thread for thread in threads if thread.state not in STOPPED]
    return replace((running or threads or [entry])[0], pid=entry.pid, parent=entry.parent)


def _living_threads(name: str) -> list[ProcessEntry]:
    with suppress(OSError):
        folder = f"/proc/{name}/task"
        threads = (_read_status(f"{folder}/{thread}/status", int(thread)) for thread in os.listdir(folder))
        return [thread for thread in threads if thread is not None and thread.state not in ENDED]
    return []


def _read_status(path: str, number: int) -> ProcessEntry | None:
    try:
        with open(path, "rb", buffering=0) as file:
            fields = dict(FIELDS.findall(file.read(MAX_STATUS_BYTES)))
    except OSError:
        return None
    resident, swapped, page_tables = (int(fields.get(name, 0)) * 1024 for name in (b"VmRSS", b"VmSwap", b"VmPTE"))
    memory = resident + swapped + page_tables
    return ProcessEntry(number, int(fields[b"PPid"]), fields[b"State"].decode(), memory, page_tables, number)


def _proportional(entry: ProcessEntry) -> int:
    with suppress(OSError, ValueError):
        rollup = Path(f"/proc/{entry.thread}/smaps_rollup").read_text()
        shares = [int(line.split()[1]) for line in rollup.splitlines() if line.startswith(("Pss:", "SwapPss:"))]
        if shares:
            return sum(shares) * 1024 + entry.page_tables
    return entry.memory
