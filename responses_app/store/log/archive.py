"""Archival: replace the event rows of an ended log by a few compressed pages, in a single transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from django.db import transaction

from responses_app.models import LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.db import execute_prepared
from responses_app.store.log.page_codec import pack
from responses_app.store.log.reader import rows
from responses_app.store.log.rows.round_prompts import save_rounds

# Larger pages would save little space, and `starting_after` may unpack a whole page to read its last event.
EVENTS_PER_PAGE = 1000
# Archival changes no content, so the transaction may be lost in a crash and need not wait for the disk. FOR NO KEY UPDATE: inserting
# rows with a foreign key to the response stays possible.
LOCK_SQL: Final = """
SELECT set_config('synchronous_commit', 'off', TRUE) FROM responses_app_response
WHERE id = $1 AND log_form = $2 AND ended_at IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED
"""
# One prepared statement. The statements of Django's models took 1 ms per log in Python.
REPLACE_SQL: Final = f"""
WITH pages AS (
  INSERT INTO responses_app_logpage (response_id, first, last, data)
  SELECT $1, first, last, data FROM unnest($2::integer[], $3::integer[], $4::bytea[]) AS page(first, last, data)
), response AS (
  UPDATE responses_app_response SET log_form = {LogForm.PAGES.value} WHERE id = $1
), deleted AS (
  DELETE FROM responses_app_event WHERE response_id = $1 RETURNING 1
)
SELECT count(*) FROM deleted
"""  # noqa: S608 - a constant


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
        pages, packed = list[LogPage](), 0
        for frames in _split(pk):
            pages.append(build_page(pk, frames))
            packed += len(frames)
        columns = [[getattr(page, name) for page in pages] for name in ("first", "last", "data")]
        ((deleted,),) = execute_prepared(REPLACE_SQL, [pk, *columns])
        if deleted != packed:
            raise LogChanged(f"{packed} events were packed, {deleted} deleted")
    return packed


def lock_for_archive(pk: int, log_form: LogForm) -> bool:
    """Lock an ended response with a log in `log_form`. False, without waiting, if not found or locked by a different process."""
    return bool(execute_prepared(LOCK_SQL, [pk, log_form.value]))


def build_page(pk: int, frames: Sequence[EventFrame]) -> LogPage:
    """Build a page of a log, without saving."""
    return LogPage(response_id=pk, first=frames[0].number, last=frames[-1].number, data=pack(frames))


def _split(pk: int) -> Iterator[list[EventFrame]]:
    """Split the rows of a log into pages. The last event is alone in a page, because GET and lists read only the last event."""
    after = -1
    while len(frames := rows(pk, after, EVENTS_PER_PAGE + 1)) > EVENTS_PER_PAGE:
        after = frames[EVENTS_PER_PAGE - 1].number
        yield frames[:EVENTS_PER_PAGE]
    yield from filter(None, (frames[:-1], frames[-1:]))
