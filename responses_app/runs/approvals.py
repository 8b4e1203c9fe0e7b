"""Approvals of MCP calls in a context: each answers a request of the context, and is used once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from responses_app.errors import InvalidRequest
from responses_app.runs.create_request import CreateRequest
from responses_app.store.content import approvals

Item = Mapping[str, Any]


def check_approvals(create_request: CreateRequest, items: Sequence[Item], own: Sequence[Item]) -> None:
    """Check the approvals and denials among `items`; `own` are the items of the request. Raises InvalidRequest.

    An approval whose call is in the context has been used by another server or another response, and is accepted as history.
    """
    requests = {item["id"]: item for item in items if item["type"] == "mcp_approval_request"}
    answered: set[str] = set()
    for item in items:
        if item["type"] == "mcp_approval_response":
            uid = item["approval_request_id"]
            if uid in answered:
                raise _already_answered(uid)
            answered.add(uid)
    made = _made(items)
    for item in (one for one in items if one["type"] == "mcp_approval_response"):
        uid = item["approval_request_id"]
        if uid not in requests and uid not in made:
            raise InvalidRequest(f"No approval request found with id {uid}.", param="input")
    for uid in _new_approvals(items, own):
        _check_server(create_request, requests[uid])


async def check_unused(create_request: CreateRequest, items: Sequence[Item], own: Sequence[Item]) -> None:
    """Check that no other response has used the approvals of the request. Raises InvalidRequest."""
    new = _new_approvals(items, own)
    used = await sync_to_async(approvals.used)(create_request.project, new) if new else set()
    if used:
        raise _already_answered(min(used))


def _new_approvals(items: Sequence[Item], own: Sequence[Item]) -> list[str]:
    """Return the ids of the approval requests that `own` items approve and whose calls are to be made."""
    made, uids = _made(items), {item["id"] for item in own}
    approved = (item for item in items if item["type"] == "mcp_approval_response" and item["approve"] and item["id"] in uids)
    return [item["approval_request_id"] for item in approved if item["approval_request_id"] not in made]


def _made(items: Sequence[Item]) -> set[str | None]:
    return {item.get("approval_request_id") for item in items if item["type"] == "mcp_call"}


def _check_server(create_request: CreateRequest, request: Item) -> None:
    label = request["server_label"]
    if label not in create_request.mcp_tools:
        message = (
            f"The call of approval request {request['id']} cannot be made: 'tools' has no tool of type 'mcp' with the "
            f"'server_label' '{label}'. Send the tool again, with 'authorization' if the server needs it."
        )
        raise InvalidRequest(message, param="tools")


def _already_answered(uid: str) -> InvalidRequest:
    return InvalidRequest(f"The approval request {uid} was already answered.", param="input")
