"""Stored logs for tests: written by the protocol writer, the same each time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import orjson

from responses_app.models import Event, Response, Status
from responses_app.protocol.deltas import ReasoningDelta, TextDelta
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.writer import Writer
from tests.support.store.log_records import NOW, USAGE, log

SAID = ["Nothing", " is", " lost", ":", " \0", ' "quoted"', "\n\n", " größer", " 漢字", " \U0001f980", ",", " and", "."]
BORN: dict[str, Any] = {"id": "resp_1", "status": "in_progress", "output": [], "usage": None, "error": None}


def log_frames(deltas: int) -> list[EventFrame]:
    """Build the log of a response with `deltas` deltas, a few of them reasoning. Times rise by 17 ms."""
    numbers = count()
    writer = Writer(BORN, lambda prefix: f"{prefix}{next(numbers):048x}")
    events = writer.open()
    for place in range(deltas):
        text = SAID[place % len(SAID)]
        events += writer.write(ReasoningDelta(text) if place < deltas // 5 else TextDelta(text))
    events += writer.complete(1, USAGE)
    return [
        EventFrame(event["sequence_number"], event["type"], orjson.dumps(event), at * 17) for at, event in enumerate(events)
    ]


def stored_response(frames: Sequence[EventFrame], uid: str = "resp_1", **fields: Any) -> Response:
    """Store an ended response with `frames` as the rows of the log."""
    row = log(uid).row
    for name, value in {"status": Status.COMPLETED, "ended_at": NOW, **fields}.items():
        setattr(row, name, value)
    row.save()
    Event.objects.bulk_create(
        [Event(response=row, number=one.number, type=one.type, data=one.data.decode(), ms=one.ms) for one in frames]
    )
    return row
