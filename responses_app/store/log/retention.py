"""Retention rules: when to erase deltas of archived logs, responses, and responses of `store: false`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

from responses_app.models import ApiKey, LogForm, LogPage, Project, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.content import orphans
from responses_app.store.content.batches import change_in_batches, warn_once
from responses_app.store.content.deletion import delete_rows
from responses_app.store.log.archive import EVENTS_PER_PAGE, build_page
from responses_app.store.log.page_codec import UnreadablePage, new_compressor, unpack
from responses_app.store.log.rows import partitions

# A background response of `store: false` can be polled for so long after its end.
TEMPORARY: Final = timedelta(minutes=10)
# Logs of a batch are in memory, unpacked.
MAX_LOGS: Final = 50
# Filters of the responses of each rule, each backed by an index together with the time of the end.
FILTERS: Final[Mapping[str, Sequence[Mapping[str, Any]]]] = {
    "deltas": [{"log_form": LogForm.PAGES}],
    "responses": [{"log_form": form} for form in LogForm],
    "temporary": [{"stored": False}],
}
DELETE_EARLIER_PAGES_SQL: Final = """
DELETE FROM responses_app_logpage AS page USING unnest(%(keys)s::bigint[], %(last)s::integer[]) AS kept (response_id, first)
WHERE page.response_id = ANY(%(keys)s) AND page.response_id = kept.response_id AND page.first < kept.first
"""


def overdue(name: str, before: datetime) -> int:
    """Count the responses due under the rule `name`."""
    return sum(rows.count() for rows in _due(name, before))


def prune(name: str, before: datetime) -> Iterator[int]:
    """Apply a rule to responses ended before `before`. Yield the size of each batch, so that the caller can pause or stop."""
    if name == "responses":
        yield from _prune_partitions(before)
    for rows in _due(name, before):
        if name == "deltas":
            yield from change_in_batches(rows, erase_deltas, order="ended_at", limit=MAX_LOGS)
        else:
            yield from change_in_batches(rows, delete_rows, order="ended_at")


def prune_by_limits(now: datetime) -> Iterator[int]:
    """Erase the responses whose key or project keeps these for a shorter time, and the orphans of the project. Yield sizes of batches."""
    owners: list[tuple[dict[str, Any], int]] = [
        *(({"key": pk}, days) for pk, days in ApiKey.objects.values_list("pk", "retention_days") if days),
        *(({"project": name}, days) for name, days in Project.objects.values_list("name", "retention_days") if days),
    ]
    for owner, days in owners:
        before = now - timedelta(days=days)
        # The time of creation has an index without a filter.
        due = Response.objects.filter(**owner, ended_at__lt=before, created_at__lt=before)
        yield from change_in_batches(due, delete_rows)
        if "project" in owner:
            yield from orphans.prune(before, owner["project"])


def erase_deltas(keys: Sequence[int]) -> Sequence[int]:
    """Erase the deltas of archived logs, in a transaction that has locked the responses. Return the keys without damaged logs."""
    rows = LogPage.objects.filter(response__in=keys).order_by("response_id", "first")
    last, pages, compressor = dict[int, int](), list[LogPage](), new_compressor()
    for pk, group in groupby(rows, lambda page: page.response_id):
        log = list(group)
        # The terminal event stays in its page, unless the log has a single page.
        old = log[:-1] or log
        try:
            frames = [frame for page in old for frame in unpack(bytes(page.data)) if not frame.type.endswith(".delta")]
        except UnreadablePage as error:
            warn_once(pk, str(error))
            continue
        last[pk] = log[-1].first if len(log) > 1 else log[-1].last + 1
        pages += [build_page(pk, part, compressor) for part in _split(frames)]
    with connection.cursor() as cursor:
        cursor.execute(DELETE_EARLIER_PAGES_SQL, {"keys": list(last), "last": list(last.values())})
    LogPage.objects.bulk_create(pages)
    Response.objects.filter(pk__in=last).update(log_form=LogForm.WITHOUT_DELTAS)
    return list(last)


def _split(frames: Sequence[EventFrame]) -> Iterator[Sequence[EventFrame]]:
    return (frames[start : start + EVENTS_PER_PAGE] for start in range(0, len(frames), EVENTS_PER_PAGE))


def _due(name: str, before: datetime) -> list[QuerySet[Response]]:
    """Select responses with an end before `before`: a query for each filter."""
    return [Response.objects.filter(**fields, ended_at__lt=before) for fields in FILTERS[name]]


def _prune_partitions(before: datetime) -> Iterator[int]:
    """Delete the responses of partitions of which every response is due, and drop the partitions with the pages."""
    for partition in partitions.list_due(before):
        rows = Response.objects.filter(partition.responses)
        yield from change_in_batches(rows, partial(delete_rows, pages=False))
        if rows.exists():
            # A locked or damaged response keeps the partition.
            partitions.delete_stray_pages(partition)
    partitions.drop_empty()
