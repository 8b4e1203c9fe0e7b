"""Computer call: actions with the mouse and the keyboard of the client's computer."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Family, OutputItem
from responses_app.protocol.items.client_tools.client_call import ClientCall, initial_client_call

COMPUTER_CALL: Final = Family(
    type="computer_call",
    id_prefix="cu_",
    tool="computer",
    output=OutputItem("computer_call_output", "cuo_"),
    opened_by={ClientCall: "computer_call"},
    initial=initial_client_call,
    whole=True,
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
