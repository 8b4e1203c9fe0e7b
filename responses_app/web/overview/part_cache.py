"""Cache in memory with a bound on its bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class PartCache(Generic[Entry]):
    """Entries by key, for several threads. Above `max_bytes` the entries that were not used for the longest time are dropped."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self._bytes = max_bytes, 0
        self._entries: OrderedDict[Hashable, tuple[Entry, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> Entry | None:
        """Return the entry of the key, None without an entry."""
        with self._lock:
            if key not in self._entries:
                return None
            self._entries.move_to_end(key)
            return self._entries[key][0]

    def put(self, key: Hashable, entry: Entry, size: int) -> None:
        """Keep an entry of `size` bytes in the place of an earlier one of the key."""
        with self._lock:
            _, old_size = self._entries.pop(key, (None, 0))
            self._entries[key] = entry, size
            self._bytes += size - old_size
            while self._bytes > self._max_bytes:
                _, (_, size) = self._entries.popitem(last=False)
                self._bytes -= size
