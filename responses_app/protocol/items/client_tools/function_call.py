"""Function call and custom tool call: calls of tools that the client declared, with arguments in JSON or free text as input."""

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


def _initial(delta: Call, new_id: IdFactory) -> Item:
    """Return the initial item, with the key of the argument stream: functions have `arguments`, custom tools `input`."""
    optional = {"namespace": delta.namespace, "async": delta.async_ or None}
    return {
        "status": "in_progress",
        "call_id": new_id(CALL_ID_PREFIX),
        "name": delta.name,
        "arguments" if delta.kind == "function" else "input": "",
        **{key: value for key, value in optional.items() if value is not None},
    }


FUNCTION_CALL: Final = Family(
    type="function_call",
    id_prefix="fc_",
    tool="function",
    output=OutputItem("function_call_output", "fco_"),
    item=StreamedCall,
    opened_by={Call: "function"},
    initial=_initial,
    steps={Arguments: StreamedCall.append},
    # An empty text is no JSON document, so a call without arguments has `{}`.
    argument_stream=ArgumentStreamSpec(
        delta="response.function_call_arguments.delta",
        done="response.function_call_arguments.done",
        key="arguments",
        empty="{}",
    ),
    final_statuses=COMPLETED_OR_INCOMPLETE,
)

CUSTOM_TOOL_CALL: Final = Family(
    type="custom_tool_call",
    id_prefix="ctc_",
    tool="custom_tool",
    output=OutputItem("custom_tool_call_output", "ctco_"),
    item=StreamedCall,
    opened_by={Call: "custom"},
    initial=_initial,
    steps={Arguments: StreamedCall.append},
    argument_stream=ArgumentStreamSpec(
        delta="response.custom_tool_call_input.delta",
        done="response.custom_tool_call_input.done",
        key="input",
    ),
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
