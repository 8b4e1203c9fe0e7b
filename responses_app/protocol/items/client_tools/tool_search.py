"""Tool search call: a search for tools that the client runs."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Family, OutputItem
from responses_app.protocol.items.client_tools.client_call import ClientCall, initial_client_call

TOOL_SEARCH_CALL: Final = Family(
    type="tool_search_call",
    id_prefix="tsc_",
    tool="tool_search",
    output=OutputItem("tool_search_output", "tso_"),
    opened_by={ClientCall: "tool_search_call"},
    initial=initial_client_call,
    whole=True,
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
