"""Frames from the client: JSON objects with a `type` and an optional `stream_id`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.schemas import create_response
from responses_app.validation import json_body
from responses_app.validation.errors import invalid_value, missing_type, shorten, wrong_type

CREATE, STEER = "response.create", "response.steer"
TYPES: Final = (CREATE, STEER)
STREAM_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
# Fields of the frame that are not parameters of the create request. `stream` has no meaning on a WebSocket.
FRAME_FIELDS: Final = frozenset({"type", "stream_id", "stream", "generate"})


@dataclass(frozen=True, slots=True)
class CreateFrame:
    """Queued `response.create` frame, not validated yet. `size` is the length of the frame in characters."""

    body: Mapping[str, Any]
    size: int

    @property
    def previous_response_id(self) -> object:
        """Return the unvalidated `previous_response_id`."""
        return self.body.get("previous_response_id")

    def to_request(self, key: ApiKey) -> CreateRequest:
        """Validate the frame. Raise InvalidRequest with the same `code` and `param` as over HTTP."""
        if self.body.get("background"):
            message = "Unsupported parameter: 'background' is not supported over a WebSocket."
            raise InvalidRequest(message, param="background", code="unsupported_parameter")
        generate = self.body.get("generate")
        if generate is not None and not isinstance(generate, bool):
            raise wrong_type("generate", "a boolean", generate)
        raw = {name: value for name, value in self.body.items() if name not in FRAME_FIELDS}
        request = create_response.parse_request({**raw, "stream": True}, key)
        return replace(request, emit_error_event=False, generate=generate is not False)


def parse(text: str | None) -> dict[str, Any]:
    """Parse the JSON object of a frame; `text` is None for a binary frame. Raise InvalidRequest `invalid_json`."""
    if text is None:
        raise InvalidRequest("A message must be a text frame with a JSON object.", code="invalid_json")
    try:
        return json_body.parse(text)
    except InvalidRequest as error:
        error.code = "invalid_json"
        raise


def frame_type(raw: Mapping[str, Any]) -> str:
    """Return the `type` of a frame. Raise InvalidRequest for a missing or unknown type."""
    value = raw.get("type")
    if not isinstance(value, str):
        raise missing_type((), value)
    if value not in TYPES:
        raise invalid_value("type", value, " and ".join(f"'{name}'" for name in TYPES))
    return value


def stream_id(raw: Mapping[str, Any]) -> str | None:
    """Return the `stream_id` of a frame, None for the default stream. Raise InvalidRequest `invalid_stream_id`."""
    name = raw.get("stream_id")
    if name is None or (isinstance(name, str) and STREAM_ID.fullmatch(name)):
        return name
    shown = shorten(name)
    message = f"Invalid 'stream_id': '{shown}'. It must have 1 to 256 characters: letters, digits, '_', '-' and '.'."
    raise InvalidRequest(message, param="stream_id", code="invalid_stream_id")
