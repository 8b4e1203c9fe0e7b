"""Refused requests: collected in the memory of a process, and written by the maintenance, so that no request waits or fails."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db.models import QuerySet

from responses_app.errors import ApiError, shorten
from responses_app.models import ApiKey, RefusedRequest

# Statuses that make no row: clients poll for objects that do not exist.
NOT_NOTED: Final = frozenset({404, 405})
# Rows of a key in a minute; requests without a valid key share one bound. Further requests are counted in the last row.
ROWS_PER_MINUTE: Final = 20
MINUTE_S: Final = 60.0
MAX_KEYS: Final = 1_000
# Rows are deleted with the responses, and after this time at the latest.
MAX_AGE: Final = timedelta(days=30)
BATCH: Final = 1_000


@dataclass(frozen=True, slots=True)
class RequestPlace:
    """Refused request beside its error: id, method, path without the query, key, address of the client."""

    request_id: str
    method: str
    path: str
    key: ApiKey | None = None
    address: str = ""


class RefusalBuffer:
    """Refused requests of a process that are not written yet, at most `ROWS_PER_MINUTE` of a key in a minute."""

    def __init__(self) -> None:
        self._rows: list[RefusedRequest] = []
        # Rows of the current minute, by account.
        self._noted: defaultdict[str, list[RefusedRequest]] = defaultdict(list)
        self._minute_began = 0.0

    def note(self, error: ApiError, place: RequestPlace) -> None:
        """Note a refused request. The cost is bounded, and nothing is read or written."""
        if error.status in NOT_NOTED:
            return
        now = time.monotonic()
        if now - self._minute_began >= MINUTE_S:
            self._minute_began = now
            self._noted.clear()
        key = place.key
        account = "" if key is None else f"{key.pk} {key.project} {key.name}"
        noted = self._noted[account if len(self._noted) < MAX_KEYS else ""]
        if len(noted) >= ROWS_PER_MINUTE:
            noted[-1].count += 1
            return
        row = _row(error, place)
        noted.append(row)
        self._rows.append(row)

    def take(self) -> Sequence[RefusedRequest]:
        """Take the rows to be written, without the last row of an account in this minute, which may count more requests."""
        open_rows = {id(noted[-1]) for noted in self._noted.values() if len(noted) >= ROWS_PER_MINUTE}
        if time.monotonic() - self._minute_began >= MINUTE_S:
            open_rows = set()
        ready = [row for row in self._rows if id(row) not in open_rows]
        self._rows = [row for row in self._rows if id(row) in open_rows]
        return ready

    def clear(self) -> None:
        """Forget all rows."""
        self._rows.clear()
        self._noted.clear()


buffer: Final = RefusalBuffer()


def write_due(_now: datetime) -> Iterator[int]:
    """Write the rows of the buffer; yield their number."""
    if rows := buffer.take():
        # A key may have been deleted meanwhile; its rows stay.
        keys = set(ApiKey.objects.filter(pk__in={row.key_id for row in rows}).values_list("pk", flat=True))
        for row in rows:
            row.key_id = row.key_id if row.key_id in keys else None
        RefusedRequest.objects.bulk_create(rows, batch_size=BATCH)
    yield len(rows)


def overdue(now: datetime, age: timedelta | None) -> QuerySet[RefusedRequest]:
    """Select rows older than `age` and than `MAX_AGE`."""
    return RefusedRequest.objects.filter(created_at__lt=now - min(age or MAX_AGE, MAX_AGE))


def prune(now: datetime, age: timedelta | None) -> Iterator[int]:
    """Delete the overdue rows. Yield the size of each batch."""
    while keys := list(overdue(now, age).order_by("created_at").values_list("pk", flat=True)[:BATCH]):
        yield RefusedRequest.objects.filter(pk__in=keys).delete()[0]


def _row(error: ApiError, place: RequestPlace) -> RefusedRequest:
    key = place.key
    return RefusedRequest(
        created_at=datetime.now(UTC),
        request_id=place.request_id,
        project="" if key is None else key.project,
        key_id=None if key is None else key.pk,
        method=_stored(place.method, 16),
        path=_stored(place.path, 200),
        address=_stored(place.address, 64),
        status=error.status,
        code=_stored(error.code or error.type, 64),
        message=_stored(error.message, 300),
    )


def _stored(text: str, limit: int) -> str:
    """Return a text for a column: Postgres has no NUL and no lone surrogates."""
    return shorten(text.replace("\0", "").encode("utf-8", "replace").decode(), limit)
