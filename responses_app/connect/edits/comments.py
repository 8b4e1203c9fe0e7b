"""Comments in files with `#` for comments."""

from __future__ import annotations

from collections.abc import Sequence


def comments_at_end(removed: Sequence[str]) -> Sequence[str]:
    """Return the comments at the end of removed lines: the next table or entry has these."""
    count = next((index for index, line in enumerate(reversed(removed)) if not line.startswith("#")), len(removed))
    return removed[len(removed) - count :]
