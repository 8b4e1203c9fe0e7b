"""More to say to a response that is under way: `response.steer`, and what becomes of it (responses-api.md §1.7.6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from responses_app.errors import ApiError, InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import new_id
from responses_app.runs.prepare.context import CALLS, OUTPUTS
from responses_app.schemas.parsing import items

KEYS: Final = frozenset({"type", "previous_response_id", "input"})
# Accepted for one response and not yet told to the model.
MOST: Final = 16
_ANSWERS: Final = {call: output for output, call in OUTPUTS.items()}


class SteerRejected(Exception):
    """It comes to nothing; `code` is one of the protocol."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class SteerRequest:
    """One submission. `told` are its messages, once it has been accepted; then it has an id."""

    parent: str
    input: Any
    told: Sequence[dict[str, Any]] = ()
    id: str | None = None

    def accepted(self, raw: Mapping[str, Any], order: CreateRequest, pending: int) -> SteerRequest:
        """It, with an id, if a response to that order can take it. Raises Refused."""
        if order.conversation is not None or order.compact_threshold is not None or order.compacts or not order.generate:
            message = "A response in a conversation, with automatic compaction, or that generates nothing cannot be steered."
            raise SteerRejected("steering_not_supported", message)
        if unknown := next((name for name in raw if name not in KEYS), None):
            raise SteerRejected(
                "invalid_input", f"Unknown parameter: '{unknown}'. A steer has 'previous_response_id' and 'input'."
            )
        told = _messages(self.input)
        if pending >= MOST:
            raise SteerRejected("too_many_pending_steers", f"{MOST} steers of this response are pending, which is the limit.")
        return replace(self, told=told, id=new_id("steer_"))

    def event(self, kind: str, number: int, **more: Any) -> dict[str, Any]:
        """`response.steer.accepted` or `.pending`; `number` is that of the last event of the response: these do not count."""
        told = {"id": self.id, "previous_response_id": self.parent}
        return {"type": f"response.steer.{kind}", "sequence_number": number, "steer": told, **more}

    def failed(self, number: int, code: str, message: str) -> dict[str, Any]:
        """`response.steer.failed`, with the input, so that the client can say it elsewhere."""
        told = {"input": self.input, "previous_response_id": self.parent, **({"id": self.id} if self.id else {})}
        error = {"type": "invalid_request_error", "code": code, "message": message}
        return {"type": "response.steer.failed", "sequence_number": number, "error": error, "steer": told}


def read(raw: Mapping[str, Any]) -> SteerRequest:
    """The steer in a frame. Raises Invalid where it names no response."""
    parent = raw.get("previous_response_id")
    if not isinstance(parent, str) or not parent:
        message = "Missing required parameter: 'previous_response_id'."
        raise InvalidRequest(message, param="previous_response_id", code="missing_required_parameter")
    return SteerRequest(parent, raw.get("input"))


def input_of(steers: Sequence[SteerRequest]) -> list[dict[str, Any]]:
    """All that they say, in the order in which they came."""
    return [item for steer in steers for item in steer.told]


def required_inputs(output: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What has to be answered before anything else can be said: a stub for the output of every call that the client has to run."""
    calls = [item for item in output if item["type"] in CALLS and item.get("status") != "incomplete" and not item.get("async")]
    return [_stub(call) for call in calls]


def _stub(call: Mapping[str, Any]) -> dict[str, Any]:
    stub = {"type": _ANSWERS[call["type"]], "call_id": call["call_id"]}
    if call["type"] == "function_call":
        stub["name"] = call["name"]
    if call["type"] == "tool_search_call":
        stub["execution"] = "client"
    return stub


def _messages(raw: object) -> list[dict[str, Any]]:
    """The messages of a steer's input. Raises Refused."""
    if raw is None or raw in ("", []):
        raise SteerRejected("invalid_input", "A steer needs an 'input': a string or messages of the user.")
    try:
        told = items.parse_items(raw)
    except ApiError as error:
        raise SteerRejected("invalid_input", error.message) from error
    for place, item in enumerate(told):
        if item["type"] != "message" or item["role"] != "user":
            raise SteerRejected("invalid_input", f"Invalid 'input[{place}]': a steer takes messages of the user alone.")
    return told
