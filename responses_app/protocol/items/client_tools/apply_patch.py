"""Apply patch call: a change of the client's files."""

from __future__ import annotations

from typing import Final

from responses_app.protocol.items.base import Family, OutputItem
from responses_app.protocol.items.client_tools.client_call import ClientCall, initial_client_call

APPLY_PATCH_CALL: Final = Family(
    type="apply_patch_call",
    id_prefix="apc_",
    tool="apply_patch",
    output=OutputItem("apply_patch_call_output", "apco_"),
    opened_by={ClientCall: "apply_patch_call"},
    initial=initial_client_call,
    whole=True,
    # The type has no status `incomplete`.
    final_statuses=frozenset({"completed"}),
)
