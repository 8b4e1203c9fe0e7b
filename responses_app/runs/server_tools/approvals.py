"""Approvals and denials of MCP calls in a context: each answers a request of the context, and is used once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from asgiref.sync import sync_to_async

from responses_app.errors import InvalidRequest
from responses_app.protocol.items.registry import FAMILIES
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.server_tools import approval_address
from responses_app.store.content import approvals
from responses_app.tools.registry import BY_APPROVAL_LABEL

Item = Mapping[str, Any]


def check_approvals(create_request: CreateRequest, items: Sequence[Item], input_items: Sequence[Item]) -> list[str]:
    """Check the approvals and denials among `items`; `input_items` are those of the request. Raises InvalidRequest.

    Returns the ids of the approval requests that `input_items` answer, which no other response may have answered.
    An approval whose call is in the context has been used by another server or another response, and is accepted as history.
    """
    requests = {item["id"]: item for item in items if item["type"] == "mcp_approval_request"}
    answered: set[str] = set()
    for item in items:
        if item["type"] == "mcp_approval_response":
            uid = item["approval_request_id"]
            if uid in answered:
                raise already_answered(uid)
            answered.add(uid)
    made = _made(items)
    for item in (one for one in items if one["type"] == "mcp_approval_response"):
        uid = item["approval_request_id"]
        if uid not in requests and uid not in made:
            raise InvalidRequest(f"No approval request found with id {uid}.", param="input")
    approved = _new_approvals(items, input_items)
    for uid in approved:
        _check_server(create_request, requests[uid])
    return [*approved, *_new_denials(items, input_items)]


async def claim_denials(create_request: CreateRequest, items: Sequence[Item], input_items: Sequence[Item], uid: str) -> None:
    """Use the denials of the request for the response `uid`. Raises InvalidRequest if another response was faster.

    Approvals are claimed by their calls.
    """
    new = set(_new_denials(items, input_items))
    lost = new - await sync_to_async(approvals.claim)(create_request.project, [*new], uid) if new else set()
    if lost:
        raise already_answered(min(lost))


async def release_denials(create_request: CreateRequest, items: Sequence[Item], input_items: Sequence[Item], uid: str) -> None:
    """Undo `claim_denials` for a response that is not stored."""
    if new := _new_denials(items, input_items):
        await sync_to_async(approvals.release)(create_request.project, new, uid)


def _new_approvals(items: Sequence[Item], input_items: Sequence[Item]) -> list[str]:
    """Return the ids of the approval requests that `input_items` approve and whose calls are to be made."""
    made, approved = _made(items), _own_answers(items, input_items, approve=True)
    return [item["approval_request_id"] for _, item in approved if item["approval_request_id"] not in made]


def _new_denials(items: Sequence[Item], input_items: Sequence[Item]) -> list[str]:
    """Return the ids of the approval requests that `input_items` deny.

    A denial before output of the model is history: clients without stored responses send the denial again in each request.
    """
    last_output = max((place for place, item in enumerate(items) if _is_output(item)), default=-1)
    return [
        item["approval_request_id"] for place, item in _own_answers(items, input_items, approve=False) if place > last_output
    ]


def _own_answers(items: Sequence[Item], input_items: Sequence[Item], *, approve: bool) -> Iterator[tuple[int, Item]]:
    uids = {item["id"] for item in input_items}
    for place, item in enumerate(items):
        if item["type"] == "mcp_approval_response" and item["approve"] is approve and item["id"] in uids:
            yield place, item


def _is_output(item: Item) -> bool:
    """Return whether the model, or a tool of the server, has written `item`."""
    if item["type"] == "message":
        return bool(item["role"] == "assistant")
    return item["type"] in FAMILIES and bool(FAMILIES[item["type"]].opened_by)


def _made(items: Sequence[Item]) -> set[str | None]:
    return {item.get("approval_request_id") for item in items if item["type"] == "mcp_call"}


def _check_server(create_request: CreateRequest, request: Item) -> None:
    label = request["server_label"]
    server_tool = BY_APPROVAL_LABEL.get(label)
    if server_tool is not None and create_request.asks_before_calls and server_tool.find(create_request.tools) is not None:
        return
    if label not in create_request.mcp_tools:
        message = (
            f"The call of approval request {request['id']} cannot be made: 'tools' has no tool of type 'mcp' with the "
            f"'server_label' '{label}'. Send the tool again, with 'authorization' if the server needs it."
        )
        raise InvalidRequest(message, param="tools")
    if not approval_address.is_for_server(request["id"], create_request.project, create_request.mcp_tools[label]):
        message = (
            f"The approval request {request['id']} was made for another server: the tool with the 'server_label' '{label}' has "
            "another address now. Send the address of the approval request, or ask again without this approval."
        )
        raise InvalidRequest(message, param="tools")


def already_answered(uid: str) -> InvalidRequest:
    """Return the error for an approval request that another response has answered, or the same response twice."""
    return InvalidRequest(f"The approval request {uid} was already answered.", param="input")
