"""What the server says on a WebSocket: the events of the log, each in a text frame, and what is outside of any log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from responses_app.errors import ApiError
from responses_app.store.log.records import EventFrame
from responses_app.wire.profiles import frame_to_profile
from responses_app.wire.sse import EventFormat, padded


def encode_event(frame: EventFrame, form: EventFormat, lane: str | None) -> str:
    """An event: the very bytes that SSE sends behind `data:`, and on a named lane its name."""
    frame = frame_to_profile(frame) if form.named_open else frame
    data = padded(frame) if form.obfuscate else frame.data
    if lane is not None:
        # Names of lanes have no character that JSON would escape.
        data = data[:-1] + b',"stream_id":"' + lane.encode() + b'"}'
    return data.decode()


def encode_error(error: ApiError, lane: str | None) -> str:
    """The answer to a request that came to nothing: this and nothing behind it (responses-api.md §0, rule 5)."""
    told = {"type": error.type, "code": error.code or error.type, "message": error.message, "param": error.param}
    return encode_control({"type": "error", "status": error.status, "error": told}, lane)


def encode_control(event: Mapping[str, Any], lane: str | None) -> str:
    """An event that is in no log, on its lane."""
    return orjson.dumps(event if lane is None else {**event, "stream_id": lane}).decode()
