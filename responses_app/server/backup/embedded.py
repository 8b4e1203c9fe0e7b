"""The embedded Postgres for a command that runs without the server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from django.db import connection

from responses_app.installation import data_dir
from responses_app.installation.database_url import default_url
from responses_app.server.backup.manifest import BackupError
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.store.database_problems import is_hosted, unreachable_problem


@contextmanager
def database(*, needs_stopped_server: bool) -> Iterator[None]:
    """Run the embedded Postgres during the context, unless a server runs or DATABASE_URL names another database.

    Raises BackupError if a server runs and `needs_stopped_server`, and for another database that does not answer.
    """
    folder = data_dir.data_dir()
    is_named = os.environ.get("DATABASE_URL", default_url(folder)) != default_url(folder) or "DATABASE_URL_FILE" in os.environ
    if is_named or is_hosted():
        if problem := unreachable_problem():
            raise BackupError(problem)
        yield
        return
    try:
        held = data_dir.lock(folder)
    except data_dir.InUse as error:
        if needs_stopped_server:
            raise BackupError(f"A server runs: {error}.") from None
        yield
        return
    except data_dir.UnusableFolder as error:
        raise BackupError(f"{error}.") from None
    try:
        with Postgres(folder):
            yield
            _close_connections()
    except PostgresError as error:
        raise BackupError(str(error)) from error
    finally:
        with suppress(OSError):
            os.close(held)


def _close_connections() -> None:
    connection.close()
    # Only Django's wrapper for Postgres has a pool.
    connection.close_pool()  # type: ignore[attr-defined]
