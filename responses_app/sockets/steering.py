"""Steering: `response.steer` frames with user messages for a running response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from responses_app.errors import ApiError, InvalidRequest
from responses_app.protocol.items.registry import FAMILIES
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.schemas.parsing import items

KEYS: Final = frozenset({"type", "previous_response_id", "input"})
# Steers of one response that are accepted and not yet input of a follow-up response.
MAX_PENDING_STEERS: Final = 16
_OUTPUT_TYPES: Final = {call: output for output, call in FAMILIES.calls_by_output.items()}


class SteerRejected(Exception):
    """Rejected steer; `code` is an error code of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class SteerRequest:
    """Steer of the response `previous_response_id`. `messages` and `id` are set once the steer is accepted."""

    previous_response_id: str
    input: Any
    messages: Sequence[dict[str, Any]] = ()
    id: str | None = None

    def accepted(self, raw: Mapping[str, Any], request: CreateRequest, pending: int) -> SteerRequest:
        """Validate the steer for the response of `request` and return a copy with id and messages. Raise SteerRejected."""
        if (
            request.conversation is not None
            or request.compact_threshold is not None
            or request.compacts
            or not request.generate
        ):
            message = "A response in a conversation, with automatic compaction, or that generates nothing cannot be steered."
            raise SteerRejected("steering_not_supported", message)
        if unknown := next((name for name in raw if name not in KEYS), None):
            raise SteerRejected(
                "invalid_input", f"Unknown parameter: '{unknown}'. A steer has 'previous_response_id' and 'input'."
            )
        messages = _parse_messages(self.input)
        if pending >= MAX_PENDING_STEERS:
            message = f"{MAX_PENDING_STEERS} steers of this response are pending, which is the limit."
            raise SteerRejected("too_many_pending_steers", message)
        return replace(self, messages=messages, id=new_id("steer_"))

    def event(self, kind: str, number: int, **fields: Any) -> dict[str, Any]:
        """Build `response.steer.accepted` or `.pending`. `number` repeats the last event: steering events are not numbered."""
        steer = {"id": self.id, "previous_response_id": self.previous_response_id}
        return {"type": f"response.steer.{kind}", "sequence_number": number, "steer": steer, **fields}

    def failed(self, number: int, code: str, message: str) -> dict[str, Any]:
        """Build `response.steer.failed` with the input for a new attempt of the client."""
        steer = {"input": self.input, "previous_response_id": self.previous_response_id, **({"id": self.id} if self.id else {})}
        error = {"type": "invalid_request_error", "code": code, "message": message}
        return {"type": "response.steer.failed", "sequence_number": number, "error": error, "steer": steer}


def parse(raw: Mapping[str, Any]) -> SteerRequest:
    """Parse a `response.steer` frame. Raise InvalidRequest if `previous_response_id` is missing."""
    previous = raw.get("previous_response_id")
    if not isinstance(previous, str) or not previous:
        message = "Missing required parameter: 'previous_response_id'."
        raise InvalidRequest(message, param="previous_response_id", code="missing_required_parameter")
    return SteerRequest(previous, raw.get("input"))


def input_of(steers: Sequence[SteerRequest]) -> list[dict[str, Any]]:
    """Return the messages of all steers, in order of arrival."""
    return [item for steer in steers for item in steer.messages]


def required_inputs(output: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a stub of the output item for every complete call. The client must send the outputs before the response can continue."""
    calls = [
        item
        for item in output
        if item["type"] in _OUTPUT_TYPES and item.get("status") != "incomplete" and not item.get("async")
    ]
    return [_output_stub(call) for call in calls]


def _output_stub(call: Mapping[str, Any]) -> dict[str, Any]:
    stub = {"type": _OUTPUT_TYPES[call["type"]], "call_id": call["call_id"]}
    if call["type"] == "function_call":
        stub["name"] = call["name"]
    if call["type"] == "tool_search_call":
        stub["execution"] = "client"
    return stub


def _parse_messages(raw: object) -> list[dict[str, Any]]:
    """Parse the user messages in the input of a steer. Raise SteerRejected."""
    if raw is None or raw in ("", []):
        raise SteerRejected("invalid_input", "A steer needs an 'input': a string or messages of the user.")
    try:
        messages = items.parse_items(raw)
    except ApiError as error:
        raise SteerRejected("invalid_input", error.message) from error
    for position, item in enumerate(messages):
        if item["type"] != "message" or item["role"] != "user":
            raise SteerRejected("invalid_input", f"Invalid 'input[{position}]': a steer takes only messages of the user.")
    return messages
