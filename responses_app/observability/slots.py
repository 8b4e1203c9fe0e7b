"""Slots of the metrics of a host: numbered places for the files of a process, of which each process of a data folder takes one.

A process that follows a dead one takes its slot and counts on in its files, so there are never more files than processes at a time.
A lock, which the kernel releases with the process, shows whether a slot is taken.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final

# Descriptors of the locks that this process holds until its end.
_held: Final[list[int]] = []


def take_slot(folder: Path) -> int:
    """Take the first free slot until the end of this process, and delete the gauges of the process that had the slot before."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with _exclusive(folder):
        for number in count():
            descriptor = _try_lock(folder / f"{number}.slot")
            if descriptor is not None:
                _held.append(descriptor)
                for file in folder.glob(f"gauge_*_{number}.db"):
                    file.unlink()
                return number
    raise AssertionError("count() does not end")


def current_files(folder: Path) -> list[str]:
    """Return the files with values: those of all slots, without the gauges of slots that no process holds."""
    files = list[str]()
    with _exclusive(folder):
        for slot in folder.glob("*.slot"):
            descriptor = _try_lock(slot)
            if descriptor is not None:
                os.close(descriptor)
            names = [
                file for file in folder.glob(f"*_{slot.stem}.db") if descriptor is None or not file.name.startswith("gauge_")
            ]
            files += map(str, names)
    return files


def clear(folder: Path) -> None:
    """Delete all files, at the start of a server, so that counters begin at zero. Nothing is deleted while a process holds a slot."""
    if not folder.is_dir():
        return
    with _exclusive(folder):
        descriptors = [_try_lock(slot) for slot in folder.glob("*.slot")]
        if None not in descriptors:
            for file in (*folder.glob("*.db"), *folder.glob("*.slot")):
                file.unlink()
        for descriptor in descriptors:
            if descriptor is not None:
                os.close(descriptor)


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder / "slots.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _try_lock(file: Path) -> int | None:
    """Lock a slot and return the descriptor; None if another process, or this one, holds the slot."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
