"""Limits by cgroup v2, where a cgroup with the controllers is delegated to the runner."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

CONTROLLERS = ("memory", "pids", "cpu")
# The default weight of a cgroup is 100.
CPU_WEIGHT = 20


def create(parent: str, name: str, memory_mib: int, max_processes: int) -> str:
    """Return a new cgroup below `parent`; empty without a delegated cgroup."""
    if not parent:
        return ""
    folder = Path(parent) / name
    limits = {
        "memory.max": memory_mib * 1024 * 1024,
        "memory.swap.max": 0,
        "memory.oom.group": 1,
        # Bubblewrap itself has two processes.
        "pids.max": max_processes + 2,
        "cpu.weight": CPU_WEIGHT,
    }
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return ""
    for file, value in limits.items():
        with suppress(OSError):
            (folder / file).write_text(str(value))
    return str(folder)


def move(cgroup: str, pids: Iterable[int]) -> None:
    """Move processes to a cgroup."""
    for pid in pids if cgroup else ():
        with suppress(OSError):
            (Path(cgroup) / "cgroup.procs").write_text(str(pid))


def remove(cgroup: str) -> None:
    """Remove a cgroup whose processes have ended."""
    if cgroup:
        with suppress(OSError):
            Path(cgroup).rmdir()
