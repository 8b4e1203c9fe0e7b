"""Client call: the delta that opens calls of the tools that the protocol names and the client runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from responses_app.protocol.ids import CALL_ID_PREFIX, IdFactory
from responses_app.protocol.items.base import Delta, Item, Json

ClientCallType: TypeAlias = Literal["shell_call", "local_shell_call", "apply_patch_call", "tool_search_call", "computer_call"]


@dataclass(slots=True)
class ClientCall(Delta):
    """Whole call of a tool that the protocol names; `body` is the action, the operation or the arguments."""

    kind: ClientCallType
    body: Json


def initial_client_call(delta: ClientCall, new_id: IdFactory) -> Item:
    """Return the keys of the initial item of a client call."""
    return {"status": "in_progress", "call_id": new_id(CALL_ID_PREFIX), **delta.body}
