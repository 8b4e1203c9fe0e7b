"""Views of Chat Completions: create, and for stored completions retrieve, list, update, delete and messages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits, request_access
from responses_app.api import pagination, query
from responses_app.api.http import REQUEST_ID, json_response
from responses_app.api.started_run import start_or_repeat
from responses_app.api.views.response_list import metadata_filter
from responses_app.api_formats.chat_completions.chunks import ChunkEncoder
from responses_app.api_formats.chat_completions.completion import completion, completion_id, response_id
from responses_app.api_formats.chat_completions.request import parse_request
from responses_app.api_formats.chat_completions.stored import parse_update, stored_completion, stored_messages
from responses_app.errors import NotFound
from responses_app.models import ApiFormat, ApiKey, Response
from responses_app.runs import manager
from responses_app.runs.ids import is_id
from responses_app.store import response_list
from responses_app.store.content import input_items
from responses_app.store.content.deletion import erase
from responses_app.store.log import reader
from responses_app.store.response_list import ResponseFilter, storable_metadata
from responses_app.wire import request_body

LISTED = frozenset({"limit", "order", "after", "model"})


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/chat/completions."""
    async with rate_limits.admit(key) as ticket:
        make = partial(parse_request, key=key, request_id=request.META[REQUEST_ID])
        chat = await request_body.parse_body(request, key, make)
        with chat.translated():
            order = request_access.authorize(key, chat.order)
            started = await start_or_repeat(request, order, ticket, by_body=order.stream)
            if order.stream:
                encoder = ChunkEncoder(include_usage=chat.include_usage, obfuscate=order.obfuscate)
                response: HttpResponseBase = started.stream(request, encoder)
            else:
                response = json_response(completion(orjson.loads(await started.snapshot())))
    for name, value in ticket.headers.items():
        response[name] = value
    return response


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/chat/completions: the stored completions of the project."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "asc", ("asc", "desc")) == "desc"
    filters = ResponseFilter(
        model=query.text(request, "model"),
        api_format=ApiFormat.CHAT_COMPLETIONS,
        metadata=metadata_filter(request, LISTED),
    )
    after = query.cursor(request)
    uid = None if after is None else response_id(after)
    page = None
    if uid is None or is_id(uid):
        page = await response_list.page(key.project, filters, limit=limit, newest_first=newest_first, after=uid)
    if page is None:
        raise NotFound(f"No completion found with id '{after}'.", param="after")
    ended = [(row, snapshot) for row, snapshot in page.rows if snapshot is not None]
    bodies = (orjson.dumps(stored_completion(row, orjson.loads(snapshot))) for row, snapshot in ended)
    uids = [completion_id(row.uid) for row, _ in page.rows]
    ends = (uids[0], uids[-1]) if uids else (None, None)
    return await pagination.encode_list(key, sum(len(snapshot) for _, snapshot in ended), bodies, *ends, more=page.more)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/chat/completions/{id}."""
    del request
    return json_response(await _body(await _find(key, uid)))


async def update(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/chat/completions/{id}: replace the metadata."""
    metadata = await request_body.parse_body(request, key, parse_update)
    row = await _find(key, uid)
    row.metadata = storable_metadata(metadata)
    await row.asave(update_fields=["metadata"])
    return json_response(await _body(row))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/chat/completions/{id}; a running response is stopped first."""
    del request
    row = await _find(key, uid)
    await manager.current().cancel(row)
    if not await sync_to_async(erase)(key.project, row.uid):
        raise _missing(uid)
    return json_response({"object": "chat.completion.deleted", "id": uid, "deleted": True})


async def messages(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/chat/completions/{id}/messages: the messages of the request."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "asc", ("asc", "desc")) == "desc"
    after = query.cursor(request)
    row = await _find(key, uid)
    # A message may be several items, so all are read.
    items = await input_items.page(row, limit=sys.maxsize, newest_first=False, after=None)
    bodies = [body for _, body in items.rows] if items is not None else []
    encode = partial(_message_page, bodies, limit, newest_first=newest_first, after=after)
    return await request_body.off_loop(key, sum(map(len, bodies)), encode)


def _message_page(bodies: Sequence[str], limit: int, *, newest_first: bool, after: str | None) -> HttpResponseBase:
    """Return a page of the messages that consist of the items `bodies`. Raises NotFound."""
    stored = stored_messages(map(orjson.loads, bodies))
    if newest_first:
        stored.reverse()
    ids = [one["id"] for one in stored]
    if after is not None and after not in ids:
        raise NotFound(f"No message found with id '{after}'.", param="after")
    start = 0 if after is None else ids.index(after) + 1
    shown = ids[start : start + limit]
    ends = (shown[0], shown[-1]) if shown else (None, None)
    page = map(orjson.dumps, stored[start : start + limit])
    return pagination.list_object(page, *ends, more=len(ids) > start + limit)


async def _body(row: Response) -> dict[str, Any]:
    """Return the stored completion of a response. Raises NotFound while the response runs."""
    snapshot = await reader.snapshot(row.pk)
    if snapshot is None:
        raise _missing(completion_id(row.uid))
    return stored_completion(row, orjson.loads(snapshot))


async def _find(key: ApiKey, uid: str) -> Response:
    response_uid = response_id(uid)
    rows = response_list.visible(key.project).filter(api_format=ApiFormat.CHAT_COMPLETIONS)
    row = await rows.filter(uid=response_uid).afirst() if is_id(response_uid) else None
    if row is None:
        raise _missing(uid)
    return row


def _missing(uid: str) -> NotFound:
    return NotFound(f"Chat completion with id '{uid}' not found.")
