"""The database connection of this thread: what broke it is gone by the next use, if somebody asks.

Django looks after connections between requests only, and what runs beside them would keep a broken one for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import close_old_connections, connection, transaction

STRICT = "SET LOCAL synchronous_commit TO on"


def check_connection() -> bool:
    """Whether the connection still works; a broken one is closed, so that the next use opens another.

    What has broken one has probably broken all: those that lie in the pool are looked at too, or each would cost somebody a try,
    and a heart that fails sixteen times in a row is taken for dead.
    """
    if connection.in_atomic_block:
        return True
    if connection.is_usable() if connection.connection is not None else False:
        return True
    connection.close()
    # Only the wrapper for Postgres has a pool.
    connection.pool.check()  # type: ignore[attr-defined]
    return False


def give_back() -> None:
    """Give it back to the pool, as Django does at the end of a request; what lives longer than a request asks for that."""
    if not connection.in_atomic_block:
        close_old_connections()


@contextmanager
def durable_transaction() -> Iterator[None]:
    """A transaction whose commit is on the disk when it returns, on whatever connection: the recorder's own commits sooner."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(STRICT)
        yield
