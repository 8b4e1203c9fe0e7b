"""The official client as a second judge: its event models, its response model, its two accumulators."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, get_args

from openai._types import omit
from openai.lib.responses_websocket import ResponsesWebSocketAccumulator
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel

from responses_app.protocol.events import Event


@cache
def models() -> dict[str, type[BaseModel]]:
    """Return the model class of each event type."""
    union = get_args(ResponseStreamEvent)[0]
    return {get_args(model.model_fields["type"].annotation)[0]: model for model in get_args(union)}


def validate(event: Event) -> Any:
    """The event as the client's model; raises ValidationError where the model's own `construct` would look away."""
    return models()[event["type"]].model_validate(event)


def validate_response(response: Any) -> Response:
    """The response as the client's model."""
    return Response.model_validate(response)


def accumulate(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the items that the client's stream accumulator makes of the stream, in order."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    for event in events:
        # The client raises at an error event and sees no more.
        if event["type"] != "error":
            state.handle_event(validate(event))
    return [item.to_dict() for _, item in sorted(state._completed_output.items())]


def accumulate_socket(events: Iterable[Event]) -> Any:
    """Return the final response of the client's WebSocket accumulator."""
    accumulator = ResponsesWebSocketAccumulator()
    for event in events:
        # On a socket an error event is an answer of its own.
        if event["type"] != "error":
            accumulator.add_event(validate(event))
    return accumulator.get_final_response()
