"""JSON of stored events from rows of any form."""

from __future__ import annotations

from typing import Any

import orjson
from django.db.models import QuerySet

from responses_app.models import Event
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.rows.event_codec import LINE, unpack_line, unpack_row


async def read_stored_events(events: QuerySet[Event]) -> list[Any]:
    """Return the events of a query, in the order of their numbers."""
    lines = events.order_by("number").values_list(LINE, flat=True)
    return [orjson.loads(frame.data) async for line in lines for frame in unpack_line(line)]


def row_frames(row: Event) -> list[EventFrame]:
    """Return the events of a row."""
    return unpack_row(row.number, row.type, row.data.encode() if row.packed is None else row.packed, row.ms)
