"""Options of the database connection pool."""

from __future__ import annotations

from psycopg_pool import ConnectionPool

# By default the pool retries after 1, 2, 4, 8 and 16 s. Meanwhile leases expire and runs wait. So an attempt ends after 1 s, and
# `reconnect_failed` checks the pool, which starts the next attempt.
RECONNECT_TIMEOUT_S = 1.0

# A command waits so long for a connection. A server waits longer, through a restart of Postgres.
COMMAND_TIMEOUT_S = 5
SERVER_TIMEOUT_S = 20

POOL = {
    "min_size": 1,
    "max_size": 16,
    "timeout": COMMAND_TIMEOUT_S,
    "reconnect_timeout": RECONNECT_TIMEOUT_S,
    "reconnect_failed": ConnectionPool.check,
}


def set_server_timeout() -> None:
    """Let the process wait as long as a server for a connection. Call before the first connection."""
    POOL["timeout"] = SERVER_TIMEOUT_S
