"""File with the values of metrics, mapped into memory, whose blocks are on the disk before they are written to."""

from __future__ import annotations

import os
from typing import Final

from prometheus_client.mmap_dict import MmapedDict

INITIAL_BYTES: Final = 64 * 1024
# More than a name with its labels takes.
LARGEST_ENTRY_BYTES: Final = 8 * 1024


class ReservedValues(MmapedDict):
    """Values of a file without holes: on a full disk a write into a hole, as the library makes them, kills the process (SIGBUS)."""

    def __init__(self, filename: str, read_mode: bool = False) -> None:
        if not read_mode:
            _reserve(filename, INITIAL_BYTES)
        super().__init__(filename, read_mode)  # type: ignore[no-untyped-call]

    def _init_value(self, key: str) -> None:
        """Add a value. Raises OSError if the file cannot grow (overrides the library, which would make a hole)."""
        if self._used + LARGEST_ENTRY_BYTES > self._capacity:
            _reserve(self._fname, 2 * self._capacity)
        super()._init_value(key)  # type: ignore[no-untyped-call]


def _reserve(filename: str, size: int) -> None:
    with open(filename, "ab") as file:
        os.posix_fallocate(file.fileno(), 0, max(size, os.fstat(file.fileno()).st_size))
