"""Sealing: the rows of a log that has ended become a few pages, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, transaction

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.store.log.page_codec import pack
from responses_app.store.log.reader import rows
from responses_app.store.log.records import EventFrame

# Events of a page: more would save little, and `starting_after` unpacks a page for the sake of its last event.
SIZE = 1000


class LogChanged(Exception):
    """A row came into a log that had ended; its sealing is rolled back."""


def to_archive(before: datetime, limit: int) -> list[int]:
    """Up to `limit` responses that ended before then and are not sealed, those that have waited longest first."""
    found = Response.objects.filter(log_form=LogForm.ROWS, ended_at__lt=before).order_by("ended_at")
    return list(found.values_list("pk", flat=True)[:limit])


def seal(pk: int) -> int:
    """Seal a log that has ended; how many events it has. 0 if it is sealed already, or another process is about to. Raises Grown."""
    with transaction.atomic():
        if not lock_for_archive(pk, LogForm.ROWS):
            return 0
        packed = 0
        for frames in _parts(pk):
            page(pk, frames).save(force_insert=True)
            packed += len(frames)
        deleted, _ = Event.objects.filter(response_id=pk).delete()
        if deleted != packed:
            raise LogChanged(f"{packed} events were packed, {deleted} deleted")
        Response.objects.filter(pk=pk).update(log_form=LogForm.PAGES)
    return packed


def lock_for_archive(pk: int, log_form: LogForm) -> bool:
    """Lock a response that has ended and whose log is kept like this. False without waiting if there is none or another has it."""
    # If the host dies, the transaction has happened or it has not; nobody has to wait for the disk.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit TO off")
    # Not a lock that keeps others from referring to the row, as new items and entries do.
    free = Response.objects.select_for_update(skip_locked=True, no_key=True).order_by()
    return free.filter(pk=pk, log_form=log_form, ended_at__isnull=False).only("pk").first() is not None


def page(pk: int, frames: Sequence[EventFrame]) -> LogPage:
    """A page of a log, not saved."""
    return LogPage(response_id=pk, first=frames[0].number, last=frames[-1].number, data=pack(frames))


def _parts(pk: int) -> Iterator[list[EventFrame]]:
    """The rows of a log, page by page. The last event is alone in its page, since GET and lists read no other."""
    ended = Event.objects.filter(response_id=pk).order_by("-number").values_list("number", flat=True).first()
    after, frames = -1, rows(pk, -1, SIZE)
    while frames:
        after = frames[-1].number
        if after == ended and len(frames) > 1:
            yield frames[:-1]
            frames = frames[-1:]
        yield frames
        frames = rows(pk, after, SIZE)
