"""Sentences for a database that a program cannot use: away, too old, without rights or without tables."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from typing import Any

import psycopg
from django.db import DatabaseError, NotSupportedError, OperationalError, connections
from django.db.migrations.exceptions import MigrationSchemaMissing

from responses_app.installation.data_dir import SERVE
from responses_app.store.db import session_parameters
from responses_app.store.replica import REPLICA

CONNECT_LIMIT_S = 5
NO_RIGHTS = (
    "the role of DATABASE_URL may not make or use the tables: make it the owner of its database "
    "(ALTER DATABASE name OWNER TO role), or of its schema (ALTER SCHEMA public OWNER TO role)"
)
READ_ONLY = (
    "the database of DATABASE_URL is read-only: name the primary in the place of a standby, or end the setting "
    "default_transaction_read_only of the role or the database"
)
NO_TABLES = f"the tables are missing or of an earlier version: run the command migrate, or start {SERVE}, which does so"
NO_STANDBY = "RESPONSES_REPLICA_DATABASE_URL names a database that is no standby. Name a hot standby, or remove the variable."
OTHER_TABLES = (
    "the database has other tables with names that this server needs, as of another program or of a part of a backup: name an "
    "empty database in DATABASE_URL (CREATE DATABASE name OWNER role)"
)
ENCODING = "UTF8"

EMBEDDED = "Without DATABASE_URL the database runs while the server runs: start the server first, or set DATABASE_URL"
HOSTED = "DATABASES in the settings of the project"
# Parts of messages of Postgres or its driver: Postgres answers, so the remedy is in the address alone.
PASSWORD = ("password authentication failed", "no password supplied")
# Also of a role or a database with a limit of its own, and of the connections that are kept for superusers.
CROWDED = ("too many connections", "too many clients", "remaining connection slots")
END_CONNECTIONS = (
    "End other connections (pg_stat_activity shows them), or raise the limit of Postgres, of the database or of the role"
)
FULL = "Free space on the disk of Postgres with another program, as a deletion in Postgres writes before it frees"
SETTINGS = "project.settings"


def connection_problem(parameters: Mapping[str, Any] | None = None) -> str | None:
    """Connect outside the pool, whose time-out hides the reason. Return the reason of a failure."""
    try:
        psycopg.connect(**{**(parameters or session_parameters()), "connect_timeout": CONNECT_LIMIT_S}).close()
    except psycopg.Error as error:
        return " ".join(str(error).split()) or type(error).__name__
    return None


def replica_problem() -> str | None:
    """Return a sentence about a read replica without a connection. None if the settings have no replica."""
    if REPLICA not in connections.settings:
        return None
    if (problem := connection_problem(session_parameters(REPLICA))) is None:
        return None
    return f"The replica does not answer ({problem}): pages read the primary. Correct RESPONSES_REPLICA_DATABASE_URL."


def standby_problem() -> str | None:
    """Return a sentence if the database of the read replica is no standby: each page would wait for the replica in vain."""
    if REPLICA not in connections.settings:
        return None
    try:
        with psycopg.connect(**{**session_parameters(REPLICA), "connect_timeout": CONNECT_LIMIT_S}) as link:
            ((is_standby,),) = link.execute("SELECT pg_is_in_recovery()").fetchall()
    except psycopg.Error:
        return None
    return None if is_standby else NO_STANDBY


def unreachable_problem() -> str | None:
    """Return that the database does not answer, the reason and what to do. None if the database accepts a connection."""
    return describe_unreachable(problem) if (problem := connection_problem()) else None


def is_hosted() -> bool:
    """Return whether the app is part of another Django project, whose settings name the database."""
    return os.environ.get("DJANGO_SETTINGS_MODULE", SETTINGS) != SETTINGS


def encoding_problem(encoding: str | None) -> str | None:
    """Return the remedy for the encoding of a database, as `server_encoding` names it. None for UTF8."""
    if encoding == ENCODING:
        return None
    return (
        f"the database has the encoding {encoding}, which cannot hold every text of a response: make a new one with "
        "CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0, and name it in DATABASE_URL"
    )


def describe_database_error(error: DatabaseError) -> str | None:
    """Return what is wrong with the database, and what to do. None for an error of another kind."""
    # Django raises MigrationSchemaMissing while it handles the error of Postgres.
    cause = getattr(error.__context__, "__cause__", None) if isinstance(error, MigrationSchemaMissing) else error.__cause__
    if isinstance(cause, psycopg.errors.ReadOnlySqlTransaction):
        return f"{READ_ONLY}. Message of Postgres: {str(error).partition(chr(10))[0]}"
    if isinstance(error, MigrationSchemaMissing) or isinstance(cause, psycopg.errors.InsufficientPrivilege):
        return f"{NO_RIGHTS}. Message of Postgres: {str(error).partition(chr(10))[0]}"
    if isinstance(error, NotSupportedError) and cause is None:
        return f"Postgres is too old: {error}"
    if isinstance(cause, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn):
        return f"{NO_TABLES}. Message of Postgres: {str(error).partition(chr(10))[0]}"
    if isinstance(cause, psycopg.errors.DuplicateTable | psycopg.errors.DuplicateColumn):
        return f"{OTHER_TABLES}. Message of Postgres: {str(error).partition(chr(10))[0]}"
    if isinstance(error, OperationalError):
        return describe_unreachable(connection_problem() or str(error).rstrip())
    return None


def describe_driver_error(error: psycopg.Error) -> str:
    """Return a sentence about an error of the driver: the message of Postgres, or that the database does not answer."""
    reason = " ".join(str(error).split())
    return describe_unreachable(reason) if error.sqlstate is None else reason


def describe_unreachable(reason: str) -> str:
    """Return a sentence with the reason of an unreachable database, and the remedy."""
    return f"the database does not answer ({reason}). {remedy(reason)}"


def remedy(reason: str) -> str:
    """Return the remedy for an unreachable database, by the reason."""
    if os.strerror(errno.ENOSPC) in reason:
        return FULL
    if any(part in reason for part in CROWDED):
        return END_CONNECTIONS
    if not is_hosted() and not (os.environ.get("DATABASE_URL") or os.environ.get("DATABASE_URL_FILE")):
        return EMBEDDED
    address = HOSTED if is_hosted() else "DATABASE_URL"
    if any(part in reason for part in PASSWORD):
        return f"Correct the password in {address}"
    if "does not exist" in reason:
        return f"Create it, or correct {address}"
    return f"Start Postgres, or correct {address}"
