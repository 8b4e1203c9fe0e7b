"""Archival: replace the event rows of ended logs by a few compressed pages, a batch of logs in a single transaction.

A batch costs few statements, so that Postgres and Python spend a fraction of a millisecond on a log.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from django.db import DatabaseError, transaction
from zstandard import ZstdCompressor

from responses_app.models import LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.db import execute_prepared, is_general_error
from responses_app.store.log.page_codec import new_compressor, pack
from responses_app.store.log.reader import rows
from responses_app.store.log.rows.event_codec import STORED_SQL, unpack_row
from responses_app.store.log.rows.round_prompts import read_round_entries, save_rounds
from responses_app.store.log.rows.shared_prompts import share_prompts

logger = logging.getLogger("responses.archive")

# Larger pages would save little space, and `starting_after` may unpack a whole page to read its last event.
EVENTS_PER_PAGE = 1000
# A log with less JSON has a single page: GET unpacks all of it in less than 0.2 ms, and it takes two thirds of the space of two pages.
SINGLE_PAGE_BYTES: Final = 32 * 1024
# Logs of a batch, and rows and stored bytes that one statement reads: larger batches save little, and lock the responses for longer.
LOGS_PER_BATCH: Final = 100
ROWS_PER_BATCH: Final = 20_000
BYTES_PER_BATCH: Final = 32 * 1024 * 1024
# Archival changes no content, so the transaction may be lost in a crash and need not wait for the disk. FOR NO KEY UPDATE: inserting
# rows with a foreign key to the response stays possible.
LOCK_SQL: Final = """
SELECT id, set_config('synchronous_commit', 'off', TRUE) FROM responses_app_response
WHERE id = ANY($1) AND log_form = $2 AND ended_at IS NOT NULL ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
"""
# The starts and ends of rounds begin with the byte 1, tokens with another.
READ_SQL: Final = f"""
SELECT response_id, number, type, stored, ms, rounds, bytes FROM (
  SELECT response_id, number, type, {STORED_SQL} AS stored, ms, CASE WHEN get_byte(tokens, 0) = 1 THEN tokens END AS rounds,
    pg_column_size(data) + COALESCE(pg_column_size(packed), 0) AS size,
    sum(pg_column_size(data) + COALESCE(pg_column_size(packed), 0)) OVER (ORDER BY response_id, number ROWS UNBOUNDED PRECEDING) AS bytes
  FROM responses_app_event WHERE response_id = ANY($1)
) AS event WHERE bytes - size < $3 ORDER BY response_id, number LIMIT $2
"""  # noqa: S608 - a constant
REPLACE_SQL: Final = f"""
WITH pages AS (
  INSERT INTO responses_app_logpage (response_id, first, last, data)
  SELECT * FROM unnest($2::bigint[], $3::integer[], $4::integer[], $5::bytea[])
), response AS (
  UPDATE responses_app_response SET log_form = {LogForm.PAGES.value} WHERE id = ANY($1)
), deleted AS (
  DELETE FROM responses_app_event WHERE response_id = ANY($1) RETURNING response_id, COALESCE(events, 1) AS events
)
SELECT response_id, sum(events) FROM deleted GROUP BY response_id
"""  # noqa: S608 - a constant


class LogChanged(Exception):
    """An event was inserted during archival; the transaction is rolled back."""


def list_unarchived(before: datetime, limit: int, without: Collection[int] = ()) -> list[int]:
    """List primary keys of up to `limit` responses with an end before `before` and a log not archived, oldest first."""
    ended = Response.objects.filter(log_form=LogForm.ROWS, ended_at__lt=before).exclude(pk__in=without).order_by("ended_at")
    return list(ended.values_list("pk", flat=True)[:limit])


def archive_each(keys: Sequence[int]) -> tuple[dict[int, int], set[int]]:
    """Archive logs as `archive_logs`. If a log of the batch cannot be archived, archive each by itself.

    Return the number of events by key, and the keys of the logs that cannot be archived. Raises DatabaseError if the fault does not
    come from a log.
    """
    try:
        return archive_logs(keys), set()
    except Exception as error:
        # A damaged row may raise anything.
        if isinstance(error, DatabaseError) and is_general_error(error):
            raise
        if len(keys) == 1:
            logger.error("the log of the response with the key %d cannot be archived: %r", keys[0], error)
            return {}, set(keys)
    parts = [archive_each([key]) for key in keys]
    return {key: count for counts, _ in parts for key, count in counts.items()}, {key for _, bad in parts for key in bad}


def archive_log(pk: int) -> int:
    """Archive the log of an ended response. Return the number of events.

    0 if the log is archived or locked by a different process. Raises LogChanged.
    """
    return archive_logs([pk]).get(pk, 0)


def archive_logs(keys: Sequence[int]) -> dict[int, int]:
    """Archive the logs of ended responses in a transaction. Return the number of events by key.

    Logs that are archived, or locked by a different process, are left out, and so are logs that do not fit into the batch. Raises
    LogChanged, ValueError for an event that is not JSON on a single line, DatabaseError.
    """
    with transaction.atomic():
        logs, tokens = _read(lock_for_archive(keys, LogForm.ROWS))
        if not logs:
            return {}
        save_rounds(tokens)
        share_prompts(list(logs))
        compressor = new_compressor()
        pages = [build_page(key, frames, compressor) for key, log in logs.items() for frames in _split(log)]
        columns = [[getattr(page, name) for page in pages] for name in ("response_id", "first", "last", "data")]
        counts = {key: len(log) for key, log in logs.items()}
        deleted = dict(execute_prepared(REPLACE_SQL, [list(logs), *columns]))
        if deleted != {key: count for key, count in counts.items() if count}:
            raise LogChanged(f"{sum(counts.values())} events were packed, {sum(deleted.values())} deleted")
    return counts


def lock_for_archive(keys: Sequence[int], log_form: LogForm) -> list[int]:
    """Lock the ended responses with a log in `log_form`, without waiting, and return their keys in order."""
    return [key for key, _ in execute_prepared(LOCK_SQL, [list(keys), log_form.value])]


def build_page(pk: int, frames: Sequence[EventFrame], compressor: ZstdCompressor | None = None) -> LogPage:
    """Build a page of a log, without saving. `compressor` is one of `page_codec.new_compressor`."""
    return LogPage(response_id=pk, first=frames[0].number, last=frames[-1].number, data=pack(frames, compressor))


def _read(keys: Sequence[int]) -> tuple[dict[int, list[EventFrame]], dict[int, list[bytes]]]:
    """Read whole logs, at least one, and the stored rounds of each log that has any.

    A batch of long logs ends at ROWS_PER_BATCH rows or BYTES_PER_BATCH bytes: the logs behind are left out.
    """
    if not keys:
        return {}, {}
    fetched: Sequence[tuple[Any, ...]] = execute_prepared(READ_SQL, [keys, ROWS_PER_BATCH, BYTES_PER_BATCH])
    logs: dict[int, list[EventFrame]] = {key: [] for key in keys}
    tokens: dict[int, list[bytes]] = {}
    for key, group in groupby(fetched, itemgetter(0)):
        entries = list(group)
        logs[key] = [frame for entry in entries for frame in unpack_row(*entry[1:5])]
        if starts := [entry[5] for entry in entries if entry[5] is not None]:
            tokens[key] = starts
    is_cut = len(fetched) == ROWS_PER_BATCH or (bool(fetched) and fetched[-1][-1] >= BYTES_PER_BATCH)
    return _whole(logs, tokens, fetched[-1][0]) if is_cut else (logs, tokens)


def _whole(
    logs: Mapping[int, list[EventFrame]], tokens: Mapping[int, list[bytes]], last: int
) -> tuple[dict[int, list[EventFrame]], dict[int, list[bytes]]]:
    """Leave out the log `last`, of which rows may be missing, and those behind; read the rest of `last` if there is no other."""
    whole = {key: log for key, log in logs.items() if key < last}
    if whole:
        return whole, {key: blobs for key, blobs in tokens.items() if key < last}
    log = logs[last]
    while more := rows(last, log[-1].number, ROWS_PER_BATCH):
        log += more
    return {last: log}, {last: read_round_entries(last)}


def _split(log: Sequence[EventFrame]) -> Iterator[Sequence[EventFrame]]:
    """Split a log into pages. The last event of a long log is alone in a page, because GET and lists read only the last event."""
    if len(log) <= EVENTS_PER_PAGE and sum(len(frame.data) for frame in log) <= SINGLE_PAGE_BYTES:
        yield from [log] if log else []
        return
    for start in range(0, len(log) - 1, EVENTS_PER_PAGE):
        yield log[start : min(start + EVENTS_PER_PAGE, len(log) - 1)]
    yield log[-1:]
