"""HTTP response that streams events, and the snapshot of an unfinished response."""

from __future__ import annotations

import orjson
from django.http import StreamingHttpResponse

from responses_app.models import Response
from responses_app.protocol.reducer import fold
from responses_app.runs.execute.broadcast import FrameBatches
from responses_app.store.log import reader
from responses_app.wire import sse
from responses_app.wire.sse import EventFormat


class EventStream(StreamingHttpResponse):
    """Stream of server-sent events, with headers against buffering in proxies."""

    def __init__(self, batches: FrameBatches, form: EventFormat) -> None:
        super().__init__(sse.stream(batches, form), content_type="text/event-stream; charset=utf-8")
        self["Cache-Control"] = "no-cache"
        self["X-Accel-Buffering"] = "no"


async def partial_snapshot(row: Response) -> bytes:
    """Return the snapshot of an unfinished response: the items that are done so far."""
    return orjson.dumps(fold([orjson.loads(frame.data) async for frame in reader.stored_frames(row.pk)]))
