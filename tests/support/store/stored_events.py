"""JSON of stored events from rows of any form."""

from __future__ import annotations

from typing import Any

import orjson
from django.db.models import QuerySet

from responses_app.models import Event
from responses_app.store.log.rows.event_codec import LINE, unpack_event, unpack_line


async def read_stored_events(events: QuerySet[Event]) -> list[Any]:
    """Return the events of a query, in the order of their numbers."""
    return [orjson.loads(unpack_line(line)) async for line in events.order_by("number").values_list(LINE, flat=True)]


def stored_event(row: Event) -> Any:
    """Return the event of a row."""
    return orjson.loads(unpack_event(row.number, row.type, row.data.encode() if row.packed is None else row.packed))
