"""What the server says on a WebSocket: the events of the log, each in a text frame, and what is outside of any log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from responses_app.api.profile import renamed
from responses_app.api.sse import Form, padded
from responses_app.errors import ApiError
from responses_app.store.records import Frame


def dressed(frame: Frame, form: Form, lane: str | None) -> str:
    """An event: the very bytes that SSE sends behind `data:`, and on a named lane its name."""
    frame = renamed(frame) if form.named_open else frame
    data = padded(frame) if form.obfuscate else frame.data
    if lane is not None:
        # Names of lanes have no character that JSON would escape.
        data = data[:-1] + b',"stream_id":"' + lane.encode() + b'"}'
    return data.decode()


def envelope(error: ApiError, lane: str | None) -> str:
    """The answer to a request that came to nothing: this and nothing behind it (responses-api.md §0, rule 5)."""
    told = {"type": error.type, "code": error.code or error.type, "message": error.message, "param": error.param}
    return on({"type": "error", "status": error.status, "error": told}, lane)


def on(event: Mapping[str, Any], lane: str | None) -> str:
    """An event that is in no log, on its lane."""
    return orjson.dumps(event if lane is None else {**event, "stream_id": lane}).decode()
