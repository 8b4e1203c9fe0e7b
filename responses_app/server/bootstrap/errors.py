"""Error of a server that cannot start."""

from __future__ import annotations


class CannotStart(Exception):
    """Failure of a start; the message names the database or the engine and the reason."""
