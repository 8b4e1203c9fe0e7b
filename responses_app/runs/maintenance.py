"""Maintenance task: archives logs that have ended, and deletes rows after the end of the retention."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from responses_app.observability import events
from responses_app.runs.garbage import collect_when_idle
from responses_app.runs.models import ServedModel
from responses_app.runs.pacing import Pacing
from responses_app.store import audit_log, refused_requests, search_index, webhooks
from responses_app.store.cluster.clock import shared_clock
from responses_app.store.content import approvals, chat_threads, orphans
from responses_app.store.db import count_sessions, in_background
from responses_app.store.files import container_files, files, pending
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.limits import unstored, usage
from responses_app.store.log.archiver import Archiver, archiver_lock
from responses_app.store.log.retention import TEMPORARY, prune, prune_by_limits
from responses_app.store.log.rows import partitions
from responses_app.store.storage_report.samples import latest_values, take_sample
from responses_app.store.storage_report.samples import prune as prune_samples
from responses_app.store.vector_stores import jobs
from responses_app.tools.file_search.ingestion import ingest_files
from responses_app.tools.part_checks import check_parts
from responses_app.utils.backoff import restart_after_errors
from responses_app.webhooks.delivery import deliver_webhooks

logger = logging.getLogger("responses.maintenance")

ARCHIVE_EVERY_S = 2.0
PRUNE_EVERY_S = 30.0
FILES_EVERY_S = 5.0
MERGE_EVERY_S = 3.0
REFUSED_EVERY_S = 1.0
SESSIONS_EVERY_S = 10.0
STORAGE_EVERY_S = 20.0
ENGINES_EVERY_S = 5.0
USAGE_EVERY_S = 60.0
RETENTION_EVERY_S = 600.0
WARN_EVERY_S = 60.0
RESTART_AFTER_S = 10.0
# The first run of each task comes so early, as a server may be restarted often.
FIRST_AFTER_S = 60.0
# A statement waits this long for a lock, as of a migration, and the task ends: the end of the server waits for its tasks.
LOCK_TIMEOUT_SQL = "SET lock_timeout TO '10s'"
NO_LOCK_TIMEOUT_SQL = "RESET lock_timeout"
# Logs between two pauses.
LOGS_PER_STEP = 10

Work: TypeAlias = Callable[[datetime], Iterator[int]]

_archiver = Archiver()
# Time of the last warning of each task.
_warned: dict[str, float] = {}
# True in the thread of a task.
_is_task: ContextVar[bool] = ContextVar("_is_task", default=False)


async def upkeep(served: Mapping[str, ServedModel]) -> None:
    """Run maintenance, ingestion and the delivery of webhooks until cancelled; a cancellation waits for the current step."""
    async with asyncio.TaskGroup() as group:
        group.create_task(_every(ARCHIVE_EVERY_S, archive_due))
        group.create_task(_every(PRUNE_EVERY_S, prune_due))
        group.create_task(_every(PRUNE_EVERY_S, partitions_due))
        group.create_task(_every(PRUNE_EVERY_S, mend_due))
        group.create_task(_every(MERGE_EVERY_S, search_index_due))
        group.create_task(_every(USAGE_EVERY_S, usage_due))
        group.create_task(_every(RETENTION_EVERY_S, retention_due))
        group.create_task(_every(REFUSED_EVERY_S, refused_requests.write_due))
        group.create_task(_every(FILES_EVERY_S, delete_files_due))
        group.create_task(_every(SESSIONS_EVERY_S, sessions_due))
        group.create_task(_every(STORAGE_EVERY_S, storage_due))
        for work in (partial(_check_engines, served), check_parts, ingest_files, deliver_webhooks, collect_when_idle):
            group.create_task(restart_after_errors(work, RESTART_AFTER_S, logger))


def archive_due(now: datetime) -> Iterator[int]:
    """Archive logs of responses that ended long enough ago, unless a process of its own does; yield the events of each batch."""
    batches = _archiver.archive_due(now, LOGS_PER_STEP)
    while (count := _archive_batch(batches)) is not None:
        yield count


def _archive_batch(batches: Iterator[int]) -> int | None:
    """Archive the next batch under the lock, which the archiver process can take in the pauses: a busy process pauses for minutes."""
    with archiver_lock() as has_lock:
        return next(batches, None) if has_lock else None


def prune_due(now: datetime) -> Iterator[int]:
    """Delete rows after the end of the retention, in batches; yield the number of responses or items of each batch."""
    ages = {"temporary": TEMPORARY, "responses": settings.RESPONSES_KEEP_RESPONSES, "deltas": settings.RESPONSES_KEEP_DELTAS}
    for name, age in ages.items():
        if age is not None:
            yield from prune(name, now - age)
    if settings.RESPONSES_KEEP_RESPONSES is not None:
        yield from approvals.prune(now - settings.RESPONSES_KEEP_RESPONSES)
    if settings.RESPONSES_KEEP_WEBHOOK_DELIVERIES is not None:
        yield from webhooks.prune(now - settings.RESPONSES_KEEP_WEBHOOK_DELIVERIES)
    yield from refused_requests.prune(now, settings.RESPONSES_KEEP_RESPONSES)
    yield from audit_log.prune(now, settings.RESPONSES_KEEP_AUDIT)
    age_of_items = timedelta(0) if settings.RESPONSES_DELETE_CONVERSATION_ITEMS else settings.RESPONSES_KEEP_RESPONSES
    if age_of_items is not None:
        yield from orphans.prune(now - age_of_items)


def mend_due(now: datetime) -> Iterator[int]:
    """Let webhooks and files to ingest be due that a clock which was set back since has put off; yield the number of each."""
    yield webhooks.mend_due(now)
    yield jobs.mend_due()


def partitions_due(now: datetime) -> Iterator[int]:
    """Make the next partition of pages, and drop empty partitions; yield the number of each."""
    yield int(partitions.make_next(now))
    yield partitions.drop_empty()


def search_index_due(_now: datetime) -> Iterator[int]:
    """Merge the new entries of the full-text index; yield the number of pages."""
    yield search_index.merge_new_entries()


def retention_due(now: datetime) -> Iterator[int]:
    """Erase responses after the retention of their key or project, and choices for threads without one; yield the size of each batch."""
    yield from prune_by_limits(now)
    yield from (count for _, count in chat_threads.prune())


def usage_due(now: datetime) -> Iterator[int]:
    """Settle what is left, release reservations of dead processes, and merge rows of usage; yield the number of each batch."""
    unstored.pending.write()
    yield unstored.release_abandoned()
    yield from usage.merge(now)


def delete_files_due(now: datetime) -> Iterator[int]:
    """Clean up after interrupted uploads and deletions, and delete files that have expired; yield the number of each batch."""
    yield from pending.clean_up()
    yield from files.delete_all(files.overdue(now, settings.RESPONSES_KEEP_FILES))
    yield from container_files.delete_unused(now, settings.RESPONSES_KEEP_CONTAINERS)


def sessions_due(_now: datetime) -> Iterator[int]:
    """Report the sessions of the database to the observers; yield their number."""
    if events.is_observed():
        counts = count_sessions()
        events.sessions_counted(counts)
        yield sum(counts.values())


def storage_due(now: datetime) -> Iterator[int]:
    """Take a sample of the storage, report it to the observers, and delete old samples; yield their number."""
    is_new = take_sample(now) is not None
    if events.is_observed() and (values := latest_values(now)):
        events.storage_measured(values)
    if is_new:
        yield prune_samples(now)


async def _check_engines(served: Mapping[str, ServedModel]) -> None:
    """Report the state of all engines to the observers, again and again."""
    while True:
        if events.is_observed():
            events.engines_checked(
                {key: is_up for model in served.values() for key, is_up in (await model.engine_states()).items()}
            )
        await asyncio.sleep(ENGINES_EVERY_S)


async def _every(pause: float, work: Work) -> None:
    await asyncio.sleep(min(pause, FIRST_AFTER_S))
    while True:
        await _in_thread(work)
        await asyncio.sleep(pause)


def _limit_lock_waits(connection: BaseDatabaseWrapper, **_: object) -> None:
    """Limit the waits of a connection of a task, and remove the limit when a request gets the connection from the pool later.

    Most runs of some tasks need no connection, so none is made for the limit.
    """
    session: Any = connection.connection
    if _is_task.get() != getattr(session, "has_lock_limit", False):
        session.has_lock_limit = _is_task.get()
        with connection.cursor() as cursor:
            cursor.execute(LOCK_TIMEOUT_SQL if session.has_lock_limit else NO_LOCK_TIMEOUT_SQL)


connection_created.connect(_limit_lock_waits)


async def _in_thread(work: Work) -> None:
    """Run `work` in a thread with a separate connection: the recorder has the other connection, and streams wait for the recorder."""
    stop = threading.Event()
    doing = in_background(_run_steps, work, stop)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        stop.set()
        await doing
        raise


def _warn(name: str, error: Exception) -> None:
    """Log an error at most once a minute for each task: a full disk, or a database or storage that is away, lasts."""
    now = time.monotonic()
    if now - _warned.get(name, -math.inf) >= WARN_EVERY_S:
        _warned[name] = now
        logger.warning("%s: %s", name, error)


def _run_steps(work: Work, stop: threading.Event) -> None:
    pacing, token = Pacing(stop), _is_task.set(True)
    try:
        for _ in work(shared_clock.now()):
            if not pacing.pause():
                return
    except (DatabaseError, StorageUnavailable) as error:
        _warn(work.__name__, error)
    except Exception:
        # The next run of the task continues.
        logger.exception("%s", work.__name__)
    finally:
        _is_task.reset(token)
        connection.close()
