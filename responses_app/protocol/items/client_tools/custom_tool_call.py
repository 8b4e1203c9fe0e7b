"""Custom tool call: a call of a client's tool with free text as input."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.events import ArgumentStreamSpec
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Arguments, Family, Item, OutputItem
from responses_app.protocol.items.client_tools.function_call import Call, named_call, optional_keys
from responses_app.protocol.items.streamed_call import StreamedCall


def _initial(delta: Call, new_id: IdFactory) -> Item:
    return {**named_call(delta, new_id), "input": "", **optional_keys(delta)}


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
