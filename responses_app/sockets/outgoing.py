"""Frames to the client: events of the log, errors and steering events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from responses_app.errors import ApiError
from responses_app.protocol.encoding import EventFrame
from responses_app.wire.profiles import frame_to_profile
from responses_app.wire.sse import EventFormat, padded


def encode_event(frame: EventFrame, form: EventFormat, stream_id: str | None) -> bytes:
    """Encode an event with the same bytes as the SSE `data:` line, and add `stream_id` on a named stream."""
    frame = frame_to_profile(frame) if form.open_responses else frame
    data = padded(frame) if form.obfuscate else frame.data
    if stream_id is not None:
        # A valid `stream_id` has no character that JSON escapes.
        data = data[:-1] + b',"stream_id":"' + stream_id.encode() + b'"}'
    return data


def encode_error(error: ApiError, stream_id: str | None) -> str:
    """Encode the `error` event for a request without a response, the only event for the request."""
    details = {"type": error.type, "code": error.code or error.type, "message": error.message, "param": error.param}
    return encode_control({"type": "error", "status": error.status, "error": details}, stream_id)


def encode_control(event: Mapping[str, Any], stream_id: str | None) -> str:
    """Encode an event outside of any log."""
    return orjson.dumps(event if stream_id is None else {**event, "stream_id": stream_id}).decode()
