"""Views of conversations and conversation items."""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import ApiKey, Conversation
from responses_app.runs.ids import is_id, new_id
from responses_app.runs.prepare.items import conversation
from responses_app.runs.prepare.items.conversation import find, prepare_items
from responses_app.schemas.parsing import items
from responses_app.store.content import conversations
from responses_app.store.content.conversations import ConversationLocked
from responses_app.store.content.input_items import ItemPage
from responses_app.validation.base import parse_metadata
from responses_app.validation.errors import unknown_parameter, wrong_type
from responses_app.wire import item_serializer, profiles, request_body

MOST_ITEMS = 20


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/conversations."""
    async with rate_limits.admit(key) as ticket:
        metadata, new = await request_body.parse_body(request, key, _new, b"{}")
        input_items, fetched = await prepare_items(key.project, new)
        row = Conversation(
            uid=new_id("conv_"),
            project=key.project,
            metadata=metadata,
            created_at=datetime.fromtimestamp(int(time.time()), UTC),
        )
        await sync_to_async(conversations.create)(row, input_items, fetched)
        await ticket.release()
    return json_response(_shape(row), headers=ticket.headers)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/conversations/{id}."""
    del request
    return json_response(_shape(await find(key.project, uid)))


async def update(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/conversations/{id}: replace the metadata."""
    metadata = await request_body.parse_body(request, key, _changed, b"{}")
    row = await find(key.project, uid)
    row.metadata = metadata
    if not await Conversation.objects.filter(pk=row.pk).aupdate(metadata=row.metadata):
        raise conversation.missing(uid)
    return json_response(_shape(row))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/conversations/{id}."""
    del request
    await _change(conversations.delete, await find(key.project, uid))
    return json_response({"id": uid, "object": "conversation.deleted", "deleted": True})


async def add_items(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/conversations/{id}/items: add all items or none."""
    include = query.include(request)
    async with rate_limits.admit(key) as ticket:
        input_items = await request_body.parse_body(request, key, _added, b"{}")
        row = await find(key.project, uid)
        bodies: list[str] = await _change(conversations.add, row, *await prepare_items(key.project, input_items))
        await ticket.release()
    response = await _listed(request, key, ItemPage([(0, body) for body in bodies], more=False), include)
    for name, value in ticket.headers.items():
        response[name] = value
    return response


async def list_items(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/conversations/{id}/items."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    include = query.include(request)
    after = query.cursor(request)
    row = await find(key.project, uid)
    known = after is None or is_id(after)
    page = await conversations.page(row, limit=limit, newest_first=newest_first, after=after) if known else None
    if page is None:
        raise NotFound(f"No item found with id '{after}'", param="after")
    return await _listed(request, key, page, include)


async def retrieve_item(request: HttpRequest, key: ApiKey, uid: str, item: str) -> HttpResponseBase:
    """GET /v1/conversations/{id}/items/{item_id}."""
    include = query.include(request)
    row = await find(key.project, uid)
    body = await conversations.item(row, item) if is_id(item) else None
    if body is None:
        raise _no_item(uid, item)
    return json_response(profiles.item_to_profile(request, item_serializer.redact_images(body, include)))


async def remove_item(request: HttpRequest, key: ApiKey, uid: str, item: str) -> HttpResponseBase:
    """DELETE /v1/conversations/{id}/items/{item_id}; returns the conversation."""
    del request
    row = await find(key.project, uid)
    if not (is_id(item) and await _change(conversations.remove, row, item)):
        raise _no_item(uid, item)
    return json_response(_shape(row))


async def _change(function: Any, row: Conversation, *args: object) -> Any:
    """Change a conversation that may have been deleted meanwhile. Raises ApiError."""
    try:
        return await sync_to_async(function)(row, *args)
    except conversations.ItemExists as error:
        raise InvalidRequest("Item already in conversation", param="items", code="item_already_in_conversation") from error
    except ConversationLocked as error:
        raise conversation.locked() from error
    except Conversation.DoesNotExist as error:
        raise conversation.missing(row.uid) from error


def _new(raw: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    _known(raw, {"items", "metadata"})
    return _metadata(raw.get("metadata")), _items(raw.get("items"), least=0)


def _changed(raw: dict[str, Any]) -> str:
    _known(raw, {"metadata"})
    if "metadata" not in raw:
        raise InvalidRequest("Missing required parameter: 'metadata'.", param="metadata", code="missing_required_parameter")
    return _metadata(raw["metadata"])


def _added(raw: dict[str, Any]) -> list[dict[str, Any]]:
    _known(raw, {"items"})
    if raw.get("items") is None:
        raise InvalidRequest("Missing required parameter: 'items'.", param="items", code="missing_required_parameter")
    return _items(raw["items"], least=1)


def _known(raw: dict[str, Any], names: set[str]) -> None:
    for name in raw:
        if name not in names:
            raise unknown_parameter(name)


async def _listed(request: HttpRequest, key: ApiKey, page: ItemPage, include: Collection[str]) -> HttpResponseBase:
    bodies = (profiles.item_to_profile(request, item_serializer.redact_images(body, include)) for _, body in page.rows)
    return await pagination.encode_list(key, page.size, bodies, page.first, page.last, more=page.more)


def _items(raw: object, *, least: int) -> list[dict[str, Any]]:
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise wrong_type("items", "an array", raw)
    if len(raw) > MOST_ITEMS:
        message = f"Invalid 'items': array too long. Expected an array with maximum length {MOST_ITEMS}, but got {len(raw)}."
        raise InvalidRequest(message, param="items", code="array_above_max_length")
    if len(raw) < least:
        message = f"Invalid 'items': array too short. Expected an array with minimum length {least}, but got {len(raw)}."
        raise InvalidRequest(message, param="items", code="array_below_min_length")
    return items.parse_items(raw, ("items",))


def _metadata(raw: object) -> str:
    return orjson.dumps(parse_metadata(raw)).decode()


def _shape(row: Conversation) -> dict[str, Any]:
    return {
        "id": row.uid,
        "object": "conversation",
        "created_at": int(row.created_at.timestamp()),
        "metadata": orjson.loads(row.metadata),
    }


def _no_item(uid: str, item: str) -> NotFound:
    return NotFound(f"Item with id '{item}' not found in conversation '{uid}'.")
