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


def _initial(delta: ClientCall, new_id: IdFactory) -> Item:
    return {"status": "in_progress", "call_id": new_id(CALL_ID_PREFIX), **delta.body}


def client_call_family(
    kind: ClientCallType,
    id_prefix: str,
    tool: str,
    output: OutputItem,
    *,
    final_statuses: frozenset[str] = COMPLETED_OR_INCOMPLETE,
) -> Family:
    """Return a family whose items are opened whole by a client call."""
    return Family(
        type=kind,
        id_prefix=id_prefix,
        tool=tool,
        output=output,
        opened_by={ClientCall: kind},
        initial=_initial,
        whole=True,
        final_statuses=final_statuses,
    )


APPLY_PATCH_CALL: Final = client_call_family(
    "apply_patch_call",
    "apc_",
    "apply_patch",
    OutputItem("apply_patch_call_output", "apco_"),
    # The type has no status `incomplete`.
    final_statuses=frozenset({"completed"}),
)
TOOL_SEARCH_CALL: Final = client_call_family(
    "tool_search_call", "tsc_", "tool_search", OutputItem("tool_search_output", "tso_")
)
COMPUTER_CALL: Final = client_call_family("computer_call", "cu_", "computer", OutputItem("computer_call_output", "cuo_"))
