"""Preparation of the database at start: Django, tables, first API key."""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from responses_app.installation.missing_modules import missing_module_problem
from responses_app.server.bootstrap.errors import CannotStart
from responses_app.server.bootstrap.progress import Progress

CONNECT_LIMIT = 5
# Servers that start at once on one database migrate in turn; each waits at most so many seconds. An index of a large table takes minutes.
TURN_LIMIT = 1800
TURN_POLL = 0.1
TURN = 0x56657262  # Number of the advisory lock.


def check_settings() -> list[str]:
    """Load the settings and parse the engine URLs before anything is started. Return warnings.

    Raises CannotStart with the invalid setting, engine URL, alias or limit.
    """
    from django.core.exceptions import ImproperlyConfigured

    try:
        importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
        from project.unknown_variables import describe_doubtful_values, describe_unknown
        from responses_app.runs.models import models_from_settings

        models_from_settings()
        return [*describe_unknown(os.environ), *describe_doubtful_values()]
    except ModuleNotFoundError as error:
        if (problem := missing_module_problem(error)) is None:
            raise
        raise CannotStart(problem) from error
    except (ImproperlyConfigured, OSError) as error:
        raise CannotStart(str(error)) from error


def prepare(folder: Path, progress: Progress) -> str:
    """Set up Django, migrate, and return the first API key. Raises CannotStart."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    with progress.step("Preparing the database"):
        import django
        from django.core.management import call_command
        from django.db import DatabaseError

        django.setup(set_prefix=False)
        from responses_app.server.bootstrap import pooler, shared_resources
        from responses_app.server.bootstrap.first_api_key import first_key, other_secret_key, unshared_secret_key
        from responses_app.store.database_problems import describe_database_error

        try:
            _reach()
            pooler.check()
            with _start_lock():
                call_command("migrate", verbosity=0, interactive=False)
                key = first_key(folder)
            for sentence in filter(None, (*shared_resources.warnings(), other_secret_key(folder), unshared_secret_key())):
                progress.line(f"WARNING: {sentence}")
            return key
        except DatabaseError as error:
            if problem := describe_database_error(error):
                raise CannotStart(problem) from error
            raise


def sign_in_link() -> str:
    """Return a sign-in path of the operator, valid once. Django must be set up. Raises CannotStart."""
    from django.db import OperationalError

    from responses_app.web.accounts import sign_in

    try:
        return sign_in.link(sign_in.operator())
    except OperationalError as error:
        raise CannotStart(f"the database does not answer: {error}".rstrip()) from error


def close_connections() -> None:
    """Close the connections of this thread, and the pool."""
    from django.db import connections

    for connection in connections.all(initialized_only=True):
        connection.close()
        # The pool's threads would try to reach a stopped Postgres. Only Django's wrapper for Postgres has a pool.
        connection.close_pool()  # type: ignore[attr-defined]


def _reach() -> None:
    """Connect once outside the pool, whose time-out hides the reason of a failure. Raises CannotStart for another encoding."""
    from django.db import connection

    from responses_app.store.database_problems import encoding_problem

    parameters = {**connection.get_connection_params(), "connect_timeout": CONNECT_LIMIT}
    parameters.pop("pool", None)
    with connection.wrap_database_errors, connection.Database.connect(**parameters) as session:  # type: ignore[attr-defined]
        problem = encoding_problem(session.info.parameter_status("server_encoding"))
    if problem:
        raise CannotStart(problem)


@contextmanager
def _start_lock() -> Iterator[None]:
    """Hold the lock of the start. Raises CannotStart after TURN_LIMIT.

    The lock is asked for again and again: a statement that waits has a snapshot, and an index that the holder of the lock builds
    concurrently would wait for the end of that statement.
    """
    from django.db import connection

    deadline = time.monotonic() + TURN_LIMIT
    while not _try_lock():
        if time.monotonic() > deadline:
            raise CannotStart(
                f"another process has been preparing the database for {TURN_LIMIT // 60} minutes; start again later"
            )
        time.sleep(TURN_POLL)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [TURN])


def _try_lock() -> bool:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [TURN])
        return bool(cursor.fetchone()[0])
