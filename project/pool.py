"""Options of database connections and of their pool."""

from __future__ import annotations

from psycopg_pool import ConnectionPool

from responses_app.utils.watched_connection import WatchedConnection

# By default the pool retries after 1, 2, 4, 8 and 16 s. Meanwhile leases expire and runs wait. So an attempt ends after 1 s, and
# `reconnect_failed` checks the pool, which starts the next attempt.
RECONNECT_TIMEOUT_S = 1.0

# A command waits so long for a connection. A server waits longer, through a restart of Postgres.
COMMAND_TIMEOUT_S = 5
SERVER_TIMEOUT_S = 20

# The kernel ends a TCP connection to a host that has vanished after about twenty seconds. By default it takes up to two hours, and
# statements hang meanwhile. An attempt to connect, which psycopg would give up after 130 s, keeps a worker of the pool from the next
# attempt. DATABASE_URL can set other values.
TIME_LIMITS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "20000",
}

POOL = {
    "min_size": 1,
    "max_size": 16,
    "timeout": COMMAND_TIMEOUT_S,
    "reconnect_timeout": RECONNECT_TIMEOUT_S,
    "reconnect_failed": ConnectionPool.check,
    "connection_class": WatchedConnection,
}


def set_server_timeout() -> None:
    """Let the process wait as long as a server for a connection. Call before the first connection."""
    POOL["timeout"] = SERVER_TIMEOUT_S
