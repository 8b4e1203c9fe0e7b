"""The database connection of this thread: what broke it is gone by the next use, if somebody asks.

Django looks after connections between requests only, and what runs beside them would keep a broken one for ever.
"""

from __future__ import annotations

from django.db import connection


def usable() -> bool:
    """Whether the connection still works; a broken one is closed, so that the next use opens another."""
    if connection.in_atomic_block:
        return True
    if connection.is_usable() if connection.connection is not None else False:
        return True
    connection.close()
    return False
