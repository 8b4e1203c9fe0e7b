"""Client calls: whole calls of the tools that the protocol names and the client runs, such as patches of files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from responses_app.protocol.ids import CALL_ID_PREFIX, IdFactory
from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Delta, Family, Item, Json, OutputItem

ClientCallType: TypeAlias = Literal["shell_call", "local_shell_call", "apply_patch_call", "tool_search_call", "computer_call"]


@dataclass(slots=True)
class ClientCall(Delta):
    """Whole call of a tool that the protocol names; `body` is the action, the operation or the arguments."""

    kind: ClientCallType
    body: Json


def initial_client_call(delta: ClientCall, new_id: IdFactory) -> Item:
    """Return the keys of the initial item of a client call."""
    return {"status": "in_progress", "call_id": new_id(CALL_ID_PREFIX), **delta.body}


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
