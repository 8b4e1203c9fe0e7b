"""Check of a connection pooler, such as PgBouncer, between the server and Postgres.

The server needs sessions: the log writer sets `synchronous_commit` once per connection, the start holds an advisory lock over several
transactions, and LISTEN belongs to a session. A pooler in transaction mode gives each transaction a session of its own choice.
"""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
from django.db import connection

from responses_app.server.bootstrap.errors import CannotStart
from responses_app.store.database_problems import connection_problem
from responses_app.store.db import listen_parameters, session_parameters

CONNECT_LIMIT_S = 5
# A notification takes less than a millisecond on one host.
NOTIFY_LIMIT_S = 2.0
PID_SQL = "SELECT pg_backend_pid()"

TRANSACTION_MODE = (
    "DATABASE_URL leads to a connection pooler in transaction mode, where a connection does not keep its session. "
    "Set pool_mode = session in PgBouncer (docs/operations/scale.md#pgbouncer)"
)
NO_NOTIFICATIONS = (
    "a NOTIFY by DATABASE_URL does not arrive at RESPONSES_LISTEN_DATABASE_URL. "
    "Both must be the same database, and the second must be without a pooler in transaction mode"
)


def check() -> None:
    """Check that DATABASE_URL keeps sessions and that notifications arrive. Raises CannotStart and OperationalError."""
    database, listening = session_parameters(), listen_parameters()
    with connection.wrap_database_errors:
        if has_shared_sessions(database):
            raise CannotStart(TRANSACTION_MODE)
        if listening != database and (problem := connection_problem(listening)):
            raise CannotStart(f"RESPONSES_LISTEN_DATABASE_URL does not answer ({problem}). Start its Postgres, or correct it")
        if listening != database and not has_notifications(database, listening):
            raise CannotStart(NO_NOTIFICATIONS)


def has_shared_sessions(parameters: dict[str, Any]) -> bool:
    """Return True if a pooler gives one session of Postgres to several connections that are open at a time."""
    with _connect(parameters) as idle:
        # A pooler that takes idle sessions in turn gives the second statement another one. A pooler that takes the last used
        # session gives this session to `busy`.
        pids = {_pid(idle), _pid(idle)}
        with _connect(parameters) as busy, busy.transaction():
            return len(pids) > 1 or _pid(busy) in pids


def has_notifications(sending: dict[str, Any], listening: dict[str, Any]) -> bool:
    """Return True if a NOTIFY with the parameters `sending` arrives at a LISTEN with the parameters `listening`."""
    channel = f"responses_check_{uuid4().hex}"
    with _connect(listening) as receiver, _connect(sending) as sender:
        receiver.execute(f"LISTEN {channel}".encode())
        sender.execute(f"NOTIFY {channel}".encode())
        return any(receiver.notifies(timeout=NOTIFY_LIMIT_S, stop_after=1))


def _connect(parameters: dict[str, Any]) -> psycopg.Connection[Any]:
    return psycopg.connect(**{**parameters, "autocommit": True, "connect_timeout": CONNECT_LIMIT_S})


def _pid(session: psycopg.Connection[Any]) -> int:
    ((pid,),) = session.execute(PID_SQL).fetchall()
    return int(pid)
