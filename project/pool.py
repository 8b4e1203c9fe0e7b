"""The pool of database connections: how many there may be, how long somebody waits for one, and how soon a lost database is found again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

# The pool itself would ask ever more seldom, after 1, 2, 4, 8 and 16 s, while leases run out and runs stand still.
AGAIN_S = 1.0


def again(pool: ConnectionPool[Any]) -> None:
    """An attempt was given up. Asking for a connection begins the next one, for all who wait."""
    with suppress(PoolTimeout, PoolClosed):
        pool.putconn(pool.getconn(timeout=0.001))


POOL = {"min_size": 1, "max_size": 16, "timeout": 20, "reconnect_timeout": AGAIN_S, "reconnect_failed": again}
