"""Views that create, retrieve, replay, cancel and delete responses and list input items."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits, request_access
from responses_app.access.api_keys import is_accepted
from responses_app.api import pagination, query
from responses_app.api.http import REQUEST_ID, json_response
from responses_app.api.started_run import RepeatedRun, StartedRun, start_or_repeat
from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import ApiKey, Response, Status
from responses_app.runs import manager
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.ids import is_id
from responses_app.runs.prepare import encrypted_content
from responses_app.schemas import create_response
from responses_app.schemas.parsing import tools
from responses_app.store import response_list
from responses_app.store.content import input_items as content_input_items
from responses_app.store.content.deletion import erase
from responses_app.store.log import reader
from responses_app.validation.errors import unknown_parameter
from responses_app.wire import item_serializer, profiles, request_body
from responses_app.wire.allowed_stream import while_allowed
from responses_app.wire.event_stream import EventStream, partial_snapshot
from responses_app.wire.sse import EventEncoder, EventFormat

MAX_EVENT_NUMBER = 2**31 - 1
# Fields of a create request that /responses/compact accepts.
COMPACTED = frozenset(
    {
        "model",
        "input",
        "instructions",
        "previous_response_id",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "service_tier",
        "image",
    }
)
FINAL = {
    Status.COMPLETED: "Cannot cancel a completed response.",
    Status.FAILED: "Cannot cancel a failed response.",
    Status.INCOMPLETE: "Cannot cancel a response in terminal state.",
}


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses."""
    async with rate_limits.admit(key) as ticket:
        make = partial(create_response.parse_request, key=key, request_id=request.META[REQUEST_ID])
        order = await request_body.parse_body(request, key, make)
        order = request_access.authorize(key, order)
        response = await _respond(request, await start_or_repeat(request, order, ticket, by_body=False), order)
    for name, value in ticket.headers.items():
        response[name] = value
    if unused := tools.inactive_types(order.tools):
        response["x-inactive-tools"] = ", ".join(unused)
    return response


async def _respond(request: HttpRequest, started: StartedRun | RepeatedRun, order: CreateRequest) -> HttpResponseBase:
    encoder = EventEncoder(EventFormat(order.obfuscate, profiles.is_open(request)))
    if order.background and isinstance(started, StartedRun):
        run = started.run
        if order.stream:
            # A background response continues without a client.
            return EventStream(request, lambda push: manager.current().subscribe(run, push=push), encoder)
        return json_response(profiles.to_profile(request, reader.snapshot_bytes(run.broadcast.frames[0].data)))
    if order.stream:
        return started.stream(request, encoder)
    if order.background and isinstance(started, RepeatedRun):
        snapshot = await reader.snapshot(started.row.pk) or await partial_snapshot(started.row)
    else:
        snapshot = await started.snapshot()
    return json_response(profiles.to_profile(request, snapshot))


async def input_tokens(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses/input_tokens: count the input tokens of a create request."""
    async with rate_limits.admit(key) as ticket:
        order = await request_body.parse_body(request, key, lambda raw: _counted(raw, key))
        order = request_access.authorize(key, order)
        counted = await manager.current().count(order)
        await ticket.release()
    return json_response({"object": "response.input_tokens", "input_tokens": counted}, headers=ticket.headers)


def _counted(raw: dict[str, Any], key: ApiKey) -> CreateRequest:
    if raw.pop("personality", None) is not None:
        message = "Unsupported parameter: 'personality': models of this server have none to choose from."
        raise InvalidRequest(message, param="personality", code="unsupported_parameter")
    return create_response.parse_request(raw, key)


async def compact(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses/compact: return the user's messages and an encrypted summary of the other items."""
    async with rate_limits.admit(key) as ticket:
        order = await request_body.parse_body(
            request, key, lambda raw: _compacted(raw, key, has_default=not profiles.is_open(request))
        )
        order = request_access.authorize(key, order)
        made = await manager.current().compact(order, ticket.reserve)
        await ticket.note_usage(order, manager.current().model(order.model).name, made["usage"])
    return json_response(profiles.to_profile(request, orjson.dumps(made)), headers=ticket.headers)


def _compacted(raw: dict[str, Any], key: ApiKey, *, has_default: bool) -> CreateRequest:
    """Parse the body. Without `has_default` the body must name a model. Raises InvalidRequest."""
    for name in raw:
        if name not in COMPACTED:
            raise unknown_parameter(name)
    return create_response.parse_request({**raw, "store": False}, key, has_default=has_default)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/responses/{id}, as JSON or as a stream of the log."""
    streamed = query.boolean(request, "stream")
    after = query.integer(request, "starting_after", -1, least=0, most=MAX_EVENT_NUMBER)
    obfuscate = query.boolean(request, "include_obfuscation", default=True)
    with_ciphertext = encrypted_content.INCLUDE in query.include(request)
    if after >= 0 and not streamed:
        raise InvalidRequest("'starting_after' needs 'stream=true'.", param="starting_after", code="invalid_value")
    row = await _find(key, uid)
    if settings.RESPONSES_STRICT_COMPAT:
        _check_strict_compat(row, streamed)
    if streamed:
        reader.check_replayable(row)
        encoder = EventEncoder(EventFormat(obfuscate, profiles.is_open(request)))
        subscribe = partial(manager.current().subscribe, row, after)
        return EventStream(request, while_allowed(subscribe, lambda: is_accepted(request)), encoder)
    snapshot = await reader.snapshot(row.pk) or await partial_snapshot(row)
    return json_response(
        profiles.to_profile(request, encrypted_content.with_ciphertext(key.project, snapshot) if with_ciphertext else snapshot)
    )


def _check_strict_compat(row: Response, streamed: bool) -> None:
    """Reject, with RESPONSES_STRICT_COMPAT, requests that OpenAI rejects and this server allows. Raises ApiError."""
    for flag, name in ((row.background, "background"), (row.streamed, "stream")):
        if streamed and not flag:
            raise InvalidRequest(f"This response cannot be streamed because it was not created with {name}=true.")
    if not row.background and row.ended_at is None:
        raise _missing(row.uid)


async def cancel(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/responses/{id}/cancel: end a background response; repeated calls return the cancelled response."""
    row = await _find(key, uid)
    if not row.background:
        raise InvalidRequest("Cannot cancel a synchronous response.")
    await manager.current().cancel(row)
    # Read again, as the log may have ended with a completion meanwhile.
    row = await _find(key, uid)
    if row.status in FINAL:
        raise InvalidRequest(FINAL[Status(row.status)])
    return json_response(profiles.to_profile(request, await reader.snapshot(row.pk) or await partial_snapshot(row)))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/responses/{id}; a running response is stopped first."""
    del request
    await manager.current().cancel(await _find(key, uid))
    if not await sync_to_async(erase)(key.project, uid):
        raise _missing(uid)
    return json_response({"id": uid, "object": "response", "deleted": True})


async def input_items(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/responses/{id}/input_items: the history and the input of the request."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    order = query.choice(request, "order", "desc", ("asc", "desc"))
    include = query.include(request)
    after = query.cursor(request)
    row = await _find(key, uid)
    known = after is None or is_id(after)
    page = await content_input_items.page(row, limit=limit, newest_first=order == "desc", after=after) if known else None
    if page is None:
        raise NotFound(f"No item found with id '{after}'", param="after")
    bodies = (profiles.item_to_profile(request, item_serializer.serialize(key.project, body, include)) for _, body in page.rows)
    return await pagination.encode_list(key, page.size, bodies, page.first, page.last, more=page.more)


async def _find(key: ApiKey, uid: str) -> Response:
    row = await response_list.visible(key.project).filter(uid=uid).afirst() if is_id(uid) else None
    if row is None:
        raise _missing(uid)
    return row


def _missing(uid: str) -> NotFound:
    return NotFound(f"Response with id '{uid}' not found.")
