"""Function call: a call of a function that the client declared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from responses_app.protocol.events import ArgumentStreamSpec
from responses_app.protocol.ids import CALL_ID_PREFIX, IdFactory
from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Arguments, Delta, Family, Item, OutputItem
from responses_app.protocol.items.streamed_call import StreamedCall


@dataclass(slots=True)
class Call(Delta):
    """Beginning of a call of a client's tool; `Arguments` carry the arguments or the free input."""

    name: str
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None
    # The client may answer the call in any later turn, or not at all.
    async_: bool = False


class FunctionCall(StreamedCall):
    """An open function call."""

    __slots__ = ()


def named_call(delta: Call, new_id: IdFactory) -> Item:
    """Return the keys of the initial item that function calls and custom tool calls share."""
    return {"status": "in_progress", "call_id": new_id(CALL_ID_PREFIX), "name": delta.name}


def optional_keys(delta: Call) -> Item:
    """Return the optional keys of the initial item: `namespace` and `async`."""
    values = {"namespace": delta.namespace, "async": delta.async_ or None}
    return {key: value for key, value in values.items() if value is not None}


def _initial(delta: Call, new_id: IdFactory) -> Item:
    return {**named_call(delta, new_id), "arguments": "", **optional_keys(delta)}


FUNCTION_CALL: Final = Family(
    type="function_call",
    id_prefix="fc_",
    tool="function",
    output=OutputItem("function_call_output", "fco_"),
    item=FunctionCall,
    opened_by={Call: "function"},
    initial=_initial,
    steps={Arguments: FunctionCall.append},
    # An empty text is no JSON document, so a call without arguments has `{}`.
    argument_stream=ArgumentStreamSpec(
        delta="response.function_call_arguments.delta",
        done="response.function_call_arguments.done",
        key="arguments",
        empty="{}",
    ),
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
