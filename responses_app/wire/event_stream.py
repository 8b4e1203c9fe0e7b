"""HTTP response that streams events, and the snapshot of an unfinished response."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import orjson
from django.http import HttpRequest, StreamingHttpResponse

from responses_app.models import Response
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.reducer import fold
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.store.log import reader
from responses_app.wire import sse
from responses_app.wire.asgi_extensions import DirectWriter, direct_writer
from responses_app.wire.sse import StreamEncoder

Subscribe: TypeAlias = Callable[[Push | None], FrameBatches]


class EventStream(StreamingHttpResponse):
    """Stream of server-sent events, with headers against buffering in proxies.

    Behind the HTTP server of this project a run pushes its events to the connection, as long as the client keeps up; all other
    events pass through the response. No middleware may change the content of this response.
    """

    def __init__(self, request: HttpRequest, subscribe: Subscribe, encoder: StreamEncoder) -> None:
        batches = subscribe(_push(direct_writer(getattr(request, "scope", {})), encoder))
        super().__init__(sse.stream(batches, encoder), content_type="text/event-stream; charset=utf-8")
        self["Cache-Control"] = "no-cache"
        self["X-Accel-Buffering"] = "no"


def _push(writer: DirectWriter | None, encoder: StreamEncoder) -> Push | None:
    """Return a function that writes frames to the connection, unless the client is behind."""
    if writer is None:
        return None

    def push(frames: Sequence[EventFrame]) -> bool:
        if not writer.can_write_now():
            return False
        if parts := encoder.encode(frames):
            writer.write_now(parts)
        return True

    return push


async def partial_snapshot(row: Response) -> bytes:
    """Return the snapshot of an unfinished response: the items that are done so far."""
    return orjson.dumps(fold([orjson.loads(frame.data) async for frame in reader.stored_frames(row.pk)]))
