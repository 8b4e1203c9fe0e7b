"""The embedded Postgres for a command that runs without the server."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from django.db import connection

from responses_app.engines import orphan_guard
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
        # A command that is killed leaves no Postgres, with which neither the next command nor the server would start.
        orphan_guard.kill_orphans(folder)
        orphan_guard.guard_children(folder)
        with Postgres(folder):
            yield
            _close_connections()
    except PostgresError as error:
        raise BackupError(str(error)) from error
    finally:
        with suppress(OSError):
            os.close(held)


@contextmanager
def exit_on_signals() -> Iterator[None]:
    """Raise SystemExit at SIGTERM and SIGHUP during the context, so that the command cleans up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _exit) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def _close_connections() -> None:
    connection.close()
    # Only Django's wrapper for Postgres has a pool.
    connection.close_pool()  # type: ignore[attr-defined]
