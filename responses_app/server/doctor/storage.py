"""Checks of the storage over time: logs that wait for archiving, rates, growth, and sizes by table and project."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import DatabaseError

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults
from responses_app.store.cluster.clock import database_time
from responses_app.store.storage_report.samples import LATE_S, calculate_rates, read_sample, recent_samples
from responses_app.store.storage_report.sizes import database_bytes, project_sizes, table_sizes

GIB: Final = 1024**3
# Time until the disk is full below which the check fails, and below which it warns.
FAILS_BELOW, WARNS_BELOW = timedelta(days=2), timedelta(days=14)
MAX_NAMES: Final = 4
MISSING: Final = "The database or its tables are missing."


def checks() -> list[tuple[str, Check]]:
    """Return the checks of the storage."""
    return [
        ("archiving", check_archiving),
        ("response rates", report_rates),
        ("growth", check_growth),
        ("largest tables", report_tables),
        ("largest projects", report_projects),
    ]


def check_archiving() -> CheckResults:
    """Check that no log waits for archiving longer than LATE_S seconds."""
    try:
        sample = read_sample(database_time())
    except DatabaseError:
        yield SKIPPED, MISSING
        return
    if sample.oldest_wait_s > LATE_S:
        yield (
            WARNING,
            f"{sample.waiting:,} logs wait for archiving, the oldest for {sample.oldest_wait_s / 60:.0f} min. A server must "
            "run for archiving; while it cannot keep pace, the database grows faster.",
        )
    else:
        yield OK, f"{sample.waiting:,} logs wait for archiving, the oldest for {sample.oldest_wait_s} s."


def check_growth() -> CheckResults:
    """Check the time until the disk of Postgres is full, by the growth of the last days."""
    try:
        now = database_time()
        latest = read_sample(now)
        rates = calculate_rates(recent_samples(now), latest)
    except DatabaseError:
        yield SKIPPED, MISSING
        return
    if rates.bytes_per_day is None:
        yield OK, f"The database has {latest.database_bytes / GIB:.2f} GiB. Its growth is known an hour after the first start."
        return
    sentence = f"The database has {latest.database_bytes / GIB:.2f} GiB and grows by {rates.bytes_per_day / GIB:.2f} GiB a day"
    if rates.full_at is None:
        yield OK, f"{sentence}."
        return
    left = rates.full_at - now
    status = FAILED if left < FAILS_BELOW else WARNING if left < WARNS_BELOW else OK
    remedy = "" if status == OK else " Free space, or set retention (docs/operations/retention.md)."
    yield status, f"{sentence}: its disk is full on {rates.full_at:%Y-%m-%d}.{remedy}"


def report_rates() -> CheckResults:
    """Name the responses per second of the last minutes that were created, archived and deleted."""
    try:
        now = database_time()
        rates = calculate_rates(recent_samples(now), read_sample(now))
    except DatabaseError:
        yield SKIPPED, MISSING
        return
    if rates.created is None or rates.archived is None or rates.deleted is None:
        yield OK, "The rates are known some minutes after the start of a server."
    else:
        yield (
            OK,
            f"{rates.created:.1f} responses a second are created, {rates.archived:.1f} archived, {rates.deleted:.1f} deleted.",
        )


def report_tables() -> CheckResults:
    """Name the largest tables, each with its indexes."""
    try:
        tables = table_sizes()[:MAX_NAMES]
    except DatabaseError:
        yield SKIPPED, MISSING
        return
    yield OK, ", ".join(f"{table.name} {table.total_bytes / GIB:.2f} GiB" for table in tables)


def report_projects() -> CheckResults:
    """Name the largest projects: the estimate of their share of the database, and the bytes of their files."""
    try:
        projects = project_sizes(database_bytes())[:MAX_NAMES]
    except DatabaseError:
        yield SKIPPED, MISSING
        return
    sizes = (
        f"{size.name} {size.database_bytes / GIB:.2f} GiB and {size.file_bytes / GIB:.2f} GiB of files" for size in projects
    )
    yield OK, ", ".join(sizes) or "No project has responses or files."
