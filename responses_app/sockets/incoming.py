"""What a client says on a WebSocket: JSON objects, one in each text frame, with a type and perhaps a lane."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from responses_app.errors import InvalidRequest
from responses_app.models import ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.schemas import create_response
from responses_app.schemas.errors import invalid_value, missing_type, shorten, wrong_type

CREATE, STEER = "response.create", "response.steer"
TYPES: Final = (CREATE, STEER)
LANE: Final = re.compile(r"[A-Za-z0-9_.-]{1,256}")
# Fields of the frame, which are not of the request in it; that it is streamed goes without saying.
OUTER: Final = frozenset({"type", "stream_id", "stream", "generate"})


@dataclass(frozen=True, slots=True)
class CreateFrame:
    """A `response.create` that is not judged yet: it is when its turn comes. `size` is that of the frame."""

    body: Mapping[str, Any]
    size: int

    @property
    def previous(self) -> object:
        """What it says that it continues."""
        return self.body.get("previous_response_id")

    def order(self, key: ApiKey) -> CreateRequest:
        """The order in it. Raises Invalid, with the code and the path that the same request has over HTTP."""
        if self.body.get("background"):
            message = "Unsupported parameter: 'background' is not supported over a WebSocket."
            raise InvalidRequest(message, param="background", code="unsupported_parameter")
        generate = self.body.get("generate")
        if generate is not None and not isinstance(generate, bool):
            raise wrong_type("generate", "a boolean", generate)
        raw = {name: given for name, given in self.body.items() if name not in OUTER}
        order = create_response.parse_request({**raw, "stream": True}, key)
        return replace(order, emit_error_event=False, generate=generate is not False)


def parse(text: str | None) -> dict[str, Any]:
    """The object in a frame. Raises Invalid `invalid_json`."""
    if text is None:
        raise InvalidRequest("A message must be a text frame with a JSON object.", code="invalid_json")
    try:
        return create_response.parse(text)
    except InvalidRequest as error:
        error.code = "invalid_json"
        raise


def kind(raw: Mapping[str, Any]) -> str:
    """Its type. Raises Invalid."""
    said = raw.get("type")
    if not isinstance(said, str):
        raise missing_type("type", said)
    if said not in TYPES:
        raise invalid_value("type", said, " and ".join(f"'{one}'" for one in TYPES))
    return said


def lane(raw: Mapping[str, Any]) -> str | None:
    """The name of its lane; None is the default one. Raises Invalid `invalid_stream_id`."""
    name = raw.get("stream_id")
    if name is None or (isinstance(name, str) and LANE.fullmatch(name)):
        return name
    shown = shorten(name)
    message = f"Invalid 'stream_id': '{shown}'. It must have 1 to 256 characters: letters, digits, '_', '-' and '.'."
    raise InvalidRequest(message, param="stream_id", code="invalid_stream_id")
