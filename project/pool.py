"""The pool of database connections: how many there may be, how long somebody waits for one, and how soon a lost database is found."""

from __future__ import annotations

from psycopg_pool import ConnectionPool

# The pool itself would ask ever more seldom, after 1, 2, 4, 8 and 16 s, while leases run out and runs stand still. Given up,
# an attempt is followed by a look at the whole pool, which begins with the next attempt.
AGAIN_S = 1.0

POOL = {
    "min_size": 1,
    "max_size": 16,
    "timeout": 20,
    "reconnect_timeout": AGAIN_S,
    "reconnect_failed": ConnectionPool.check,
}
