"""What is kept how long: the deltas of sealed logs, responses, and those that were never to be stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from responses_app.models import LogForm, LogPage, Response
from responses_app.store.content.deletion import erase
from responses_app.store.log.archive import SIZE, lock_for_archive, page
from responses_app.store.log.page_codec import unpack
from responses_app.store.log.records import EventFrame

BATCH = 50
# How long a background response of `store:false` can be polled after its end (responses-api.md §3.4).
TEMPORARY: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """One kind of what grows old: the places where it is found, each by an index, and what is done with each response."""

    places: Sequence[Mapping[str, Any]]
    # In a transaction of its own; False if there was nothing to do.
    apply: Callable[[Response], bool]

    def due(self, before: datetime) -> list[QuerySet[Response]]:
        """Responses whose time was over before then, those that have waited longest first, place by place."""
        return [Response.objects.filter(**place, ended_at__lt=before).order_by("ended_at") for place in self.places]


def _erase(row: Response) -> bool:
    return erase(row.project, row.uid)


def outline(row: Response) -> bool:
    """Take the deltas out of a sealed log. False if they are out already, or another process is about to."""
    with transaction.atomic():
        if not lock_for_archive(row.pk, LogForm.PAGES):
            return False
        # The last page is the terminal event, which GET reads.
        old = list(LogPage.objects.filter(response_id=row.pk).order_by("first"))[:-1]
        frames = [frame for one in old for frame in unpack(bytes(one.data)) if not frame.type.endswith(".delta")]
        LogPage.objects.filter(pk__in=[one.pk for one in old]).delete()
        LogPage.objects.bulk_create([page(row.pk, part) for part in _parts(frames)])
        Response.objects.filter(pk=row.pk).update(log_form=LogForm.WITHOUT_DELTAS)
    return True


def _parts(frames: Sequence[EventFrame]) -> Iterator[Sequence[EventFrame]]:
    return (frames[at : at + SIZE] for at in range(0, len(frames), SIZE))


RULES: Final[Mapping[str, RetentionRule]] = {
    "deltas": RetentionRule([{"log_form": LogForm.PAGES}], outline),
    "responses": RetentionRule([{"log_form": form} for form in LogForm], _erase),
    "temporary": RetentionRule([{"stored": False}], _erase),
}


def overdue(name: str, before: datetime) -> int:
    """How many responses a rule would be applied to."""
    return sum(rows.count() for rows in RULES[name].due(before))


def prune(name: str, before: datetime) -> Iterator[int]:
    """Apply a rule to all that was over before then; after each batch, how many it was, so that the caller can pause or end."""
    rule = RULES[name]
    for rows in rule.due(before):
        while found := rows.only("project", "uid")[:BATCH]:
            done = sum(rule.apply(row) for row in found)
            yield done
            # What is left is in the hands of other processes.
            if not done:
                break
