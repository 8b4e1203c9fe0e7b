"""Which processes are there, for tests that nothing is left of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from responses_app.server.processes.process_tree import descendants


def born(pid: int) -> tuple[int, str]:
    """A process and its start time, since numbers are used again; the time is empty if it is dead."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return pid, ""
    return pid, "" if fields[0] in "ZX" else fields[19]


def family(root: int) -> set[tuple[int, str]]:
    """The process and all that it has started."""
    return {born(pid) for pid in [root, *descendants(root)]}


def left(family: Iterable[tuple[int, str]], within: float) -> list[str]:
    """What of the family still lives after so many seconds, as command lines; returns as soon as nothing does."""
    deadline = time.monotonic() + within
    while (alive := [pid for pid, start in family if start and born(pid)[1] == start]) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [_command(pid) for pid in alive]


def named(root: int, word: str) -> int:
    """The first descendant with that word in its command line."""
    return next(iter(all_named(root, word)))


def all_named(root: int, *words: str) -> list[int]:
    """All descendants with one of these words in their command lines."""
    return [pid for pid in descendants(root) if any(word in _command(pid) for word in words)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
