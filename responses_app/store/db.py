"""Database connection of the current thread.

Django manages connections only at the start and end of a request. Code outside of requests uses these functions instead.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

import psycopg
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, Error, close_old_connections, connection, connections, transaction
from psycopg.conninfo import conninfo_to_dict

from project.pool import TIME_LIMITS

T = TypeVar("T")
# Set once per connection of the log, unless RESPONSES_DURABILITY is "disk". Commits that open or end a response override the setting.
ASYNC_COMMIT_SQL = "SET synchronous_commit TO off"
WAIT_FOR_DISK_SQL = "SET LOCAL synchronous_commit TO on"
# Connection parameters of Django that have no use outside of Django.
DJANGO_PARAMETERS = frozenset({"pool", "context", "cursor_factory", "prepare_threshold"})
# Beginnings of SQLSTATEs: connection, transaction, sign-in, unknown database, syntax and rights, full disk, too many connections,
# shutdown.
GENERAL_ERRORS: Final = ("08", "25", "28", "3D", "42", "531", "533", "57P")

# Threads of work that no request waits for. While the database is away, each query waits for seconds: in the few threads of asyncio,
# such work would stop what else needs these, as health checks, metrics, answers with an error and look-ups of host names.
_BACKGROUND: Final = ThreadPoolExecutor(16, "background")

# State of a session in Postgres -> name in the metrics.
SESSION_STATES: Final[Mapping[str | None, str]] = {
    "active": "active",
    "idle": "idle",
    "idle in transaction": "idle_in_transaction",
    None: "other",
}


def session_parameters(alias: str = DEFAULT_DB_ALIAS) -> dict[str, Any]:
    """Return arguments of `psycopg.connect` for a connection to a database of the settings outside of the pool."""
    parameters = connections[alias].get_connection_params()
    return {name: value for name, value in parameters.items() if name not in DJANGO_PARAMETERS}


def listen_parameters() -> dict[str, Any]:
    """Return arguments of `psycopg.connect` for LISTEN and NOTIFY: RESPONSES_LISTEN_DATABASE_URL, or DATABASE_URL."""
    url = settings.RESPONSES_LISTEN_DATABASE_URL
    return {**TIME_LIMITS, **conninfo_to_dict(url)} if url else session_parameters()


def check_connection() -> bool:
    """Return whether the connection works. A broken connection is closed, so that the next use opens a new connection.

    A fault that breaks a connection probably breaks all of them, so the idle connections of the pool are checked too. Otherwise
    each broken connection would cost a failed query, and a worker with 16 failed heartbeats in a row is considered dead.
    Raises no error of the database: the caller handles one already.
    """
    if connection.in_atomic_block:
        return True
    with suppress(Error, psycopg.Error):
        if connection.connection is not None and connection.is_usable():
            return True
        connection.close()
        # Only Django's wrapper for Postgres has a pool.
        connection.pool.check()  # type: ignore[attr-defined]
    return False


def count_sessions() -> dict[str, int]:
    """Return the number of sessions of this database by state. Sessions of other accounts have the state `other`."""
    counts = dict.fromkeys(SESSION_STATES.values(), 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT state, count(*) FROM pg_stat_activity WHERE datname = current_database() GROUP BY state")
        for state, count in cursor.fetchall():
            counts[SESSION_STATES.get(state, SESSION_STATES[None])] += count
    return counts


def await_connection(seconds: float) -> None:
    """Wait until the pool can give a connection. Raises OperationalError after some seconds, sooner than the pool itself."""
    # Only Django's wrapper for Postgres has a pool.
    pool = getattr(connection, "pool", None)
    if pool is None or connection.connection is not None:
        return
    pool.open()
    with connection.wrap_database_errors:
        pool.putconn(pool.getconn(timeout=seconds))


def release_connection() -> None:
    """Return the connection to the pool, as Django does at the end of a request. For code running longer than a request."""
    if not connection.in_atomic_block:
        close_old_connections()


@contextmanager
def released_connection() -> Iterator[None]:
    """Return the connection to the pool before the context, for a wait in it. The next query takes another one."""
    release_connection()
    yield


@contextmanager
def durable_transaction() -> Iterator[None]:
    """Run a transaction with a commit on disk at the end. The log writer's connection commits asynchronously by default."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(WAIT_FOR_DISK_SQL)
        yield


def execute_prepared(sql: str, parameters: Sequence[object]) -> list[tuple[Any, ...]]:
    """Execute a statement that is prepared once per connection, and return the rows. Parameters are named $1, $2 and so on.

    Django's cursors write the parameters into the text of each statement, so Postgres would parse and plan it every time.
    """
    connection.ensure_connection()
    raw = connection.connection
    # Django sets None, which disables `prepare` for all cursors of the connection. Its own cursors never prepare.
    raw.prepare_threshold = 0
    with connection.wrap_database_errors, psycopg.RawCursor(raw) as cursor:
        cursor.execute(sql, parameters, prepare=True)
        return cursor.fetchall() if cursor.description else []


def is_general_error(error: Error) -> bool:
    """Return whether an error comes from no single row: from the connection, the rights, a full disk or the end of Postgres."""
    code = getattr(error.__cause__, "sqlstate", None)
    return code is None or code.startswith(GENERAL_ERRORS)


async def call_in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a function that uses the database, in a thread with a separate connection: streams wait for the other connections."""
    return await in_background(_with_connection, function, *args)


def in_background(function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
    """Begin a call in a thread of the background, which may wait for the database as long as it likes."""
    call = partial(contextvars.copy_context().run, function, *args)
    return asyncio.get_running_loop().run_in_executor(_BACKGROUND, call)


def _with_connection(function: Callable[..., T], *args: Any) -> T:
    try:
        return function(*args)
    finally:
        connection.close()
