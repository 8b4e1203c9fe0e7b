"""Archival: replace the event rows of an ended log by a few compressed pages, in a single transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.db import connection, transaction

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.page_codec import pack
from responses_app.store.log.reader import rows
from responses_app.store.log.rows.round_prompts import save_rounds

# Larger pages would save little space, and `starting_after` may unpack a whole page to read its last event.
EVENTS_PER_PAGE = 1000


class LogChanged(Exception):
    """An event was inserted during archival; the transaction is rolled back."""


def list_unarchived(before: datetime, limit: int) -> list[int]:
    """List primary keys of up to `limit` responses with an end before `before` and a log not archived, oldest first."""
    ended = Response.objects.filter(log_form=LogForm.ROWS, ended_at__lt=before).order_by("ended_at")
    return list(ended.values_list("pk", flat=True)[:limit])


def archive_log(pk: int) -> int:
    """Archive the log of an ended response. Return the number of events.

    0 if the log is archived or locked by a different process. Raises LogChanged.
    """
    with transaction.atomic():
        if not lock_for_archive(pk, LogForm.ROWS):
            return 0
        save_rounds(pk)
        packed = 0
        for frames in _split(pk):
            build_page(pk, frames).save(force_insert=True)
            packed += len(frames)
        deleted, _ = Event.objects.filter(response_id=pk).delete()
        if deleted != packed:
            raise LogChanged(f"{packed} events were packed, {deleted} deleted")
        Response.objects.filter(pk=pk).update(log_form=LogForm.PAGES)
    return packed


def lock_for_archive(pk: int, log_form: LogForm) -> bool:
    """Lock an ended response with a log in `log_form`. False, without waiting, if not found or locked by a different process."""
    # Archival changes no content, so the transaction may be lost in a crash and need not wait for the disk.
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit TO off")
    # FOR NO KEY UPDATE: inserting rows with a foreign key to the response stays possible.
    free = Response.objects.select_for_update(skip_locked=True, no_key=True).order_by()
    return free.filter(pk=pk, log_form=log_form, ended_at__isnull=False).only("pk").first() is not None


def build_page(pk: int, frames: Sequence[EventFrame]) -> LogPage:
    """Build a page of a log, without saving."""
    return LogPage(response_id=pk, first=frames[0].number, last=frames[-1].number, data=pack(frames))


def _split(pk: int) -> Iterator[list[EventFrame]]:
    """Split the rows of a log into pages. The last event is alone in a page, because GET and lists read only the last event."""
    last = Event.objects.filter(response_id=pk).order_by("-number").values_list("number", flat=True).first()
    after, frames = -1, rows(pk, -1, EVENTS_PER_PAGE)
    while frames:
        after = frames[-1].number
        if after == last and len(frames) > 1:
            yield frames[:-1]
            frames = frames[-1:]
        yield frames
        frames = rows(pk, after, EVENTS_PER_PAGE)
