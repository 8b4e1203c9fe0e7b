"""Samples of the storage: taken once a minute by one of the processes; rates and growth between two samples."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import Q

from responses_app.models import LogForm, StorageSample
from responses_app.store.storage_report.sizes import database_bytes, free_bytes

logger = logging.getLogger("responses.storage")

EVERY: Final = timedelta(minutes=1)
KEEP_MINUTES: Final = timedelta(days=2)
KEEP: Final = timedelta(days=400)
# Age of the oldest log that waits for archiving above which the log of the server has a warning.
LATE_S: Final = 300
# Times over which rates and growth are calculated.
RATE_OVER: Final = timedelta(minutes=10)
GROWTH_OVER: Final = timedelta(days=7)
LEAST_GROWTH_TIME: Final = timedelta(hours=1)
COUNTS_SQL: Final = f"""
SELECT pg_stat_get_tuples_inserted('responses_app_response'::regclass),
  pg_stat_get_tuples_deleted('responses_app_response'::regclass), count(*),
  count(*) FILTER (WHERE ended_at < %(before)s),
  COALESCE(extract(epoch FROM %(before)s - min(ended_at) FILTER (WHERE ended_at < %(before)s))::int, 0)
FROM responses_app_response WHERE log_form = {LogForm.ROWS.value}
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True)
class StorageRates:
    """Responses per second between two samples, and growth of the database. None where the samples do not show it."""

    created: float | None = None
    archived: float | None = None
    deleted: float | None = None
    bytes_per_day: float | None = None
    full_at: datetime | None = None


def read_sample(now: datetime) -> StorageSample:
    """Read the state of the database, without saving. Logs wait for archiving from RESPONSES_SEAL_AFTER after their end."""
    with connection.cursor() as cursor:
        before = now - (settings.RESPONSES_SEAL_AFTER or timedelta())
        cursor.execute(COUNTS_SQL, {"before": before})
        created, deleted, unarchived, waiting, oldest_wait_s = cursor.fetchone()
    if settings.RESPONSES_SEAL_AFTER is None:
        waiting = oldest_wait_s = 0
    return StorageSample(
        taken_at=now,
        database_bytes=database_bytes(),
        free_bytes=free_bytes(),
        created=created,
        deleted=deleted,
        unarchived=unarchived,
        waiting=waiting,
        oldest_wait_s=oldest_wait_s,
    )


def take_sample(now: datetime) -> StorageSample | None:
    """Save a sample unless another process has saved one within a minute; warn if archiving is late. Return the sample."""
    # A sample of the future is one from before the clock was set back, and would be the latest until then.
    StorageSample.objects.filter(taken_at__gt=now + EVERY).delete()
    if StorageSample.objects.filter(taken_at__gt=now - EVERY).exists():
        return None
    sample = read_sample(now)
    StorageSample.objects.bulk_create([sample], ignore_conflicts=True)
    if sample.oldest_wait_s > LATE_S:
        logger.warning("%d logs wait for archiving, the oldest for %.0f s", sample.waiting, sample.oldest_wait_s)
    return sample


def prune(now: datetime) -> int:
    """Delete old samples, but for one of each hour. Return their number."""
    each_minute = Q(taken_at__lt=now - KEEP_MINUTES) & ~Q(taken_at__minute=0)
    return StorageSample.objects.filter(each_minute | Q(taken_at__lt=now - KEEP)).delete()[0]


def recent_samples(now: datetime) -> Sequence[StorageSample]:
    """Return the samples from which rates are calculated, oldest first: the first of the week, and those of the last minutes."""
    first = StorageSample.objects.filter(taken_at__gt=now - GROWTH_OVER)[:1]
    return [*first, *StorageSample.objects.filter(taken_at__gt=now - RATE_OVER)]


def latest_values(now: datetime) -> dict[str, float]:
    """Return the values of the latest sample for observers, by name; those that are not known are left out."""
    latest = StorageSample.objects.order_by("-taken_at").first()
    if latest is None:
        return {}
    rates = calculate_rates(recent_samples(now), latest)
    values = {
        "waiting": latest.waiting,
        "oldest_wait_s": latest.oldest_wait_s,
        "database": latest.database_bytes,
        "free": latest.free_bytes,
        "created": rates.created,
        "archived": rates.archived,
        "deleted": rates.deleted,
    }
    return {name: value for name, value in values.items() if value is not None}


def calculate_rates(samples: Sequence[StorageSample], latest: StorageSample) -> StorageRates:
    """Calculate rates from samples, oldest first, to `latest`. Every response that is not a row any more was archived or deleted."""
    if not samples:
        return StorageRates()
    start = next((sample for sample in samples if latest.taken_at - sample.taken_at <= RATE_OVER), samples[-1])
    seconds = (latest.taken_at - start.taken_at).total_seconds()
    created, deleted = latest.created - start.created, latest.deleted - start.deleted
    growth, full_at = _growth(samples[0], latest)
    if seconds <= 0 or created < 0 or deleted < 0:
        return StorageRates(bytes_per_day=growth, full_at=full_at)
    archived = max(created - (latest.unarchived - start.unarchived), 0)
    return StorageRates(created / seconds, archived / seconds, deleted / seconds, growth, full_at)


def _growth(first: StorageSample, latest: StorageSample) -> tuple[float | None, datetime | None]:
    """Return the bytes per day, and the time at which the disk is full if the growth goes on."""
    time = latest.taken_at - first.taken_at
    if time < LEAST_GROWTH_TIME:
        return None, None
    per_day = (latest.database_bytes - first.database_bytes) / (time / timedelta(days=1))
    if per_day <= 0 or latest.free_bytes is None:
        return per_day, None
    days = latest.free_bytes / per_day
    return per_day, latest.taken_at + timedelta(days=days) if days < KEEP.days else None
