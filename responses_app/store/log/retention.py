"""Retention rules: when to erase deltas of archived logs, responses, and responses of `store: false`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from responses_app.models import ApiKey, LogForm, LogPage, Project, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.content.deletion import erase
from responses_app.store.log.archive import EVENTS_PER_PAGE, build_page, lock_for_archive
from responses_app.store.log.page_codec import unpack
from responses_app.store.log.rows import partitions

BATCH = 50
# A background response of `store: false` can be polled for so long after its end.
TEMPORARY: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """Retention rule: filters of responses, each backed by an index, and the function to apply to each response."""

    filters: Sequence[Mapping[str, Any]]
    # Runs in its own transaction. Returns False if there was nothing to do.
    apply: Callable[[Response], bool]

    def due(self, before: datetime) -> list[QuerySet[Response]]:
        """Select responses with an end before `before`, oldest first: a query for each filter."""
        return [Response.objects.filter(**fields, ended_at__lt=before).order_by("ended_at") for fields in self.filters]


def _erase(row: Response) -> bool:
    return erase(row.project, row.uid)


def erase_deltas(row: Response) -> bool:
    """Erase the deltas of an archived log. False if erased before, or if locked by a different process."""
    with transaction.atomic():
        if not lock_for_archive([row.pk], LogForm.PAGES):
            return False
        # Without the last page, the terminal event: GET reads it.
        old = list(LogPage.objects.filter(response_id=row.pk).order_by("first"))[:-1]
        frames = [frame for page in old for frame in unpack(bytes(page.data)) if not frame.type.endswith(".delta")]
        LogPage.objects.filter(response_id=row.pk, first__in=[page.first for page in old]).delete()
        LogPage.objects.bulk_create([build_page(row.pk, part) for part in _split(frames)])
        Response.objects.filter(pk=row.pk).update(log_form=LogForm.WITHOUT_DELTAS)
    return True


def _split(frames: Sequence[EventFrame]) -> Iterator[Sequence[EventFrame]]:
    return (frames[start : start + EVENTS_PER_PAGE] for start in range(0, len(frames), EVENTS_PER_PAGE))


RULES: Final[Mapping[str, RetentionRule]] = {
    "deltas": RetentionRule([{"log_form": LogForm.PAGES}], erase_deltas),
    "responses": RetentionRule([{"log_form": form} for form in LogForm], _erase),
    "temporary": RetentionRule([{"stored": False}], _erase),
}


def overdue(name: str, before: datetime) -> int:
    """Count the responses due under the rule `name`."""
    return sum(rows.count() for rows in RULES[name].due(before))


def prune(name: str, before: datetime) -> Iterator[int]:
    """Apply a rule to responses ended before `before`. Yield the size of each batch, so that the caller can pause or stop."""
    rule = RULES[name]
    if name != "responses":
        yield from _apply(rule.due(before), rule.apply)
        return
    # Pages of a partition of which every response is due are not deleted by themselves: the whole partition is dropped in the end.
    for partition in partitions.list_due(before):
        due = [Response.objects.filter(partition.responses).order_by("pk")]
        yield from _apply(due, lambda row: erase(row.project, row.uid, delete_pages=False))
    partitions.drop_empty()
    yield from _apply(rule.due(before), rule.apply)


def prune_by_limits(now: datetime) -> Iterator[int]:
    """Erase the responses whose key or project keeps these for a shorter time. Yield the size of each batch."""
    owners: list[tuple[dict[str, Any], int]] = [
        *(({"key": pk}, days) for pk, days in ApiKey.objects.values_list("pk", "retention_days") if days),
        *(({"project": name}, days) for name, days in Project.objects.values_list("name", "retention_days") if days),
    ]
    for owner, days in owners:
        due = Response.objects.filter(**owner, ended_at__lt=now - timedelta(days=days)).order_by("pk")
        yield from _apply([due], _erase)


def _apply(due: Iterable[QuerySet[Response]], apply: Callable[[Response], bool]) -> Iterator[int]:
    for rows in due:
        while batch := rows.only("project", "uid")[:BATCH]:
            done = sum(apply(row) for row in batch)
            yield done
            # The rest is locked by other processes.
            if not done:
                break
