"""Unsaved logs, frames and a durable append for tests of the store."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import orjson

from responses_app.models import Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.records import Append, ResponseLog
from responses_app.store.log.writer import LogWriter

NOW = datetime(2026, 11, 20, tzinfo=UTC)
USAGE = {
    "input_tokens": 5,
    "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 12,
}


def log(uid: str = "resp_1", history: tuple[int, ...] = (), **fields: Any) -> ResponseLog:
    """Build a log that is not open yet, with a single input item."""
    row = Response(uid=uid, project="p", model="m", thread=fields.pop("thread", uid), history=list(history), created_at=NOW)
    return ResponseLog(row, [{"id": f"msg_{uid}", "type": "message", "role": "user", "content": []}])


def frame(number: int, kind: str = "response.output_text.delta", **fields: Any) -> EventFrame:
    """Encode a frame like a run."""
    return EventFrame(number, kind, orjson.dumps({"type": kind, "sequence_number": number, **fields}))


async def durable(recorder: LogWriter, append: Append) -> Exception | None:
    """Append and wait; return None or the failure."""
    future: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    recorder.enqueue(lambda: append, future.set_result, append.route)
    return await future
