"""Health of the database: a query with a time limit on a connection of the own, and the migrations that are missing."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import psycopg
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from responses_app.store.db import session_parameters

# Seconds in which the database must answer.
ANSWER_LIMIT_S: Final = 1.0
APP: Final = "responses_app"
# Age in seconds up to which a result is used again, so that many health checks cost one connection.
FRESH_S: Final = 1.0
# The kernel ends a connection to a host that has vanished after about ten seconds.
_KEEPALIVE: Final = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}
_APPLIED_SQL: Final = "SELECT app, name FROM django_migrations"


@dataclass(frozen=True, slots=True)
class DatabaseHealth:
    """State of the database: why it cannot be used, or the migrations that are not applied, as `app.name`."""

    problem: str = ""
    missing_migrations: Sequence[str] = ()


class DatabaseProbe:
    """Health check of the database. Concurrent callers share a query, which goes on while Postgres is silent."""

    def __init__(self) -> None:
        self._query: asyncio.Task[DatabaseHealth] | None = None
        self._last: tuple[float, DatabaseHealth] | None = None

    async def check(self) -> DatabaseHealth:
        """Return the state within ANSWER_LIMIT_S seconds."""
        if self._last is not None and time.monotonic() - self._last[0] < FRESH_S:
            return self._last[1]
        if self._query is None:
            # An empty context: a query that waits must not keep the request that began it.
            self._query = asyncio.get_running_loop().create_task(_read_health(), context=contextvars.Context())
            self._query.add_done_callback(self._note)
        await asyncio.wait({self._query}, timeout=ANSWER_LIMIT_S)
        if self._query is not None and not self._query.done():
            return DatabaseHealth(f"The database does not answer within {ANSWER_LIMIT_S:.0f} s.")
        return DatabaseHealth("The health check was cancelled.") if self._last is None else self._last[1]

    def _note(self, query: asyncio.Task[DatabaseHealth]) -> None:
        self._query = None
        if not query.cancelled():
            self._last = time.monotonic(), query.result()


async def _read_health() -> DatabaseHealth:
    """Query the database once. No text of an error is shown, as a text can name hosts and accounts."""
    known = await asyncio.to_thread(known_migrations)
    try:
        parameters = {"connect_timeout": 5, **session_parameters(), **_KEEPALIVE}
        async with await psycopg.AsyncConnection.connect(**parameters, autocommit=True) as link:
            rows = await (await link.execute(_APPLIED_SQL)).fetchall()
    except psycopg.errors.UndefinedTable:
        rows = []
    except (psycopg.Error, OSError):
        return DatabaseHealth("The database cannot be reached.")
    return DatabaseHealth(missing_migrations=sorted(known - {f"{app}.{name}" for app, name in rows}))


def later_version_problem() -> str | None:
    """Return a sentence if a later version has migrated the database, else None. Other apps of the project do not count."""
    newest = max((name for app, name in MigrationRecorder(connection).applied_migrations() if app == APP), default="")
    if not is_later(newest):
        return None
    return f"The database has migrations of a later version, such as {APP}.{newest}. Start that version or a later one."


def is_later(migration: str) -> bool:
    """Return True for the name of a migration of this app that follows those of this version."""
    return migration > max(name.partition(".")[2] for name in known_migrations() if name.startswith(f"{APP}."))


@cache
def known_migrations() -> frozenset[str]:
    """Return the migrations of all installed apps, as `app.name`."""
    return frozenset(f"{app}.{name}" for app, name in MigrationLoader(None, ignore_no_migrations=True).graph.nodes)
