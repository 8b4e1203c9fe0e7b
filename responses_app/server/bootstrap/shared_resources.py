"""Checks of what the hosts of a database share beside the database: the time, settings, and the storage of files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from django.db import DatabaseError

from responses_app.installation.data_dir import MANAGE
from responses_app.installation.shared_settings import is_other, shared_settings
from responses_app.store.cluster.clock import database_time
from responses_app.store.cluster.leases import MAX_AHEAD_S, live_workers, workers_ahead
from responses_app.store.database_problems import replica_problem, standby_problem
from responses_app.store.files.storage_check import missing_file, storage_problem
from responses_app.store.health import later_version_problem

# Keys, files and containers expire by the clock of a host; leases, rate limits, webhooks and retention have the clock of the database.
MAX_CLOCK_DIFFERENCE_S = 5.0


def warnings() -> Iterator[str]:
    """Yield a sentence for each problem. Raises OperationalError."""
    difference = clock_difference_s()
    if abs(difference) > MAX_CLOCK_DIFFERENCE_S:
        yield f"The clock of this host differs from the clock of Postgres by {difference:+.0f} s. Keys, files and containers expire by it."
    for problem in (later_version_problem(), replica_problem() or standby_problem()):
        if problem:
            yield problem
    if ahead := workers_ahead().values_list("name", flat=True).first():
        yield (
            f"The last sign of life of {ahead}, a process of this database, lies more than {MAX_AHEAD_S:.0f} s in the future: the "
            "clock of Postgres was ahead and was set back. This process is not counted as running."
        )
    yield from setting_differences()
    if problem := storage_problem():
        yield problem
        return
    try:
        missing = missing_file()
    except DatabaseError:
        raise
    except Exception as error:
        # Each storage has exceptions of its own. Responses without files need no storage.
        yield (
            f"The storage of files does not answer ({error}), so uploads fail. "
            f"Check RESPONSES_FILE_STORAGE with `{MANAGE} doctor`."
        )
        return
    if missing is not None:
        yield (
            f"The storage of files has no {missing}, which the database has. "
            "All hosts of a database need the same RESPONSES_FILE_STORAGE (docs/settings.md#storage-of-files)."
        )


def setting_differences() -> Iterator[str]:
    """Yield a sentence for settings of which a process that runs has another value. Earlier versions store no values."""
    mine = shared_settings()
    named: set[str] = set()
    for process, theirs in live_workers().values_list("name", "shared_settings"):
        others = [name for name, value in mine.items() if name not in named and is_other(value, theirs.get(name, value))]
        if others:
            named.update(others)
            yield (
                f"{', '.join(others)}: {process}, a process of this database, has another value. Each process prunes, prices, "
                "delivers, calls MCP servers and signs people in by its own value: set the same on every host."
            )


def clock_difference_s() -> float:
    """Return the seconds by which the clock of this host is ahead of the clock of Postgres."""
    before = datetime.now(UTC)
    there = database_time()
    now: datetime = before + (datetime.now(UTC) - before) / 2
    return float((now - there).total_seconds())
