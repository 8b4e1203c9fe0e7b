"""Create, retrieve, replay, cancel and delete responses; list their input."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db.models import Q
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from responses_app.api import body, limits, model_access, pages, profile, query, requests, shown, sse, tools
from responses_app.api.door import REQUEST_ID, answer
from responses_app.api.limits import Ticket
from responses_app.api.sse import Form
from responses_app.errors import Invalid, NotFound, Unavailable
from responses_app.grammar.fold import fold
from responses_app.models import ApiKey, Response, Status
from responses_app.runs import hub, sealed
from responses_app.runs.closing import error_of
from responses_app.runs.ids import could_be
from responses_app.runs.order import Order
from responses_app.runs.run import Run
from responses_app.store import inputs, replay
from responses_app.store.erase import erase
from responses_app.store.records import Frame

LAST = 2**31 - 1
FAILED = "response.failed"
# The fields of a create request that have a meaning for /responses/compact.
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


class EventStream(StreamingHttpResponse):
    """A stream of server-sent events whose proxies must not buffer."""

    def __init__(self, frames: AsyncGenerator[Frame | None, None], form: Form) -> None:
        super().__init__(sse.stream(frames, form), content_type="text/event-stream; charset=utf-8")
        self["Cache-Control"] = "no-cache"
        self["X-Accel-Buffering"] = "no"


class AttendedStream(EventStream):
    """The stream of a run that stops when its client goes, also one that goes before the first byte is asked for."""

    def __init__(self, run: Run, form: Form, ticket: Ticket) -> None:
        super().__init__(_attend(run, ticket), form)
        self._run, self._loop = run, asyncio.get_running_loop()

    def close(self) -> None:
        """Called by Django when all is sent, or when the client has gone; in a thread."""
        super().close()
        if not self._run.ended:
            self._loop.call_soon_threadsafe(hub.current().abandon, self._run)


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses."""
    async with limits.admitted(key) as ticket:
        read = await body.read(request, key, lambda raw: requests.read(raw, key))
        order = replace(read, request_id=request.META[REQUEST_ID])
        model_access.permit(key, order.model)
        run = await hub.current().begin(order)
        if run.stored:
            # From now on its row tells that it runs.
            await ticket.give()
        ticket.follow(run)
        response = await _answered(request, run, order, ticket)
    for name, value in ticket.headers.items():
        response[name] = value
    if unused := tools.inactive(order.tools):
        response["x-inactive-tools"] = ", ".join(unused)
    return response


async def _answered(request: HttpRequest, run: Run, order: Order, ticket: Ticket) -> HttpResponseBase:
    form = Form(order.obfuscate, profile.is_open(request))
    if order.background and order.stream:
        # It goes on, whoever listens.
        return EventStream(hub.current().attend(run), form)
    if order.background:
        return answer(profile.told(request, replay.cut(run.frames[0].data)))
    if order.stream:
        return AttendedStream(run, form, ticket)
    try:
        frame = await _last(run)
        await ticket.give()
    except asyncio.CancelledError:
        hub.current().abandon(run)
        raise
    snapshot = replay.cut(frame.data)
    if frame.type == FAILED and (error := error_of(orjson.loads(snapshot))) is not None:
        raise error
    return answer(profile.told(request, snapshot))


async def _last(run: Run) -> Frame:
    """The terminal frame, whoever comes to it. Raises Unavailable where this process ends before that."""
    frame = await run.done()
    if not run.moved:
        return frame
    async with aclosing(hub.current().attend(run, frame.number)) as frames:
        async for more in frames:
            frame = more or frame
    if frame.type not in replay.TERMINAL:
        raise Unavailable(f"The server is being restarted, and the response goes on. Retrieve it as {run.uid} in a moment.")
    return frame


async def input_tokens(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses/input_tokens: what a create with the same body would count as its input."""
    async with limits.admitted(key) as ticket:
        order = await body.read(request, key, lambda raw: _counted(raw, key))
        model_access.permit(key, order.model)
        counted = await hub.current().count(order)
        await ticket.give()
    return answer({"object": "response.input_tokens", "input_tokens": counted}, headers=ticket.headers)


def _counted(raw: dict[str, Any], key: ApiKey) -> Order:
    if raw.pop("personality", None) is not None:
        message = "Unsupported parameter: 'personality': models of this server have none to choose from."
        raise Invalid(message, param="personality", code="unsupported_parameter")
    return requests.read(raw, key)


async def compact(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/responses/compact: the messages of the user and a sealed summary of the rest, to go on with."""
    async with limits.admitted(key) as ticket:
        order = await body.read(request, key, lambda raw: _compacted(raw, key, has_default=not profile.is_open(request)))
        model_access.permit(key, order.model)
        made = await hub.current().compact(order)
        await ticket.give()
    return answer(profile.told(request, orjson.dumps(made)), headers=ticket.headers)


def _compacted(raw: dict[str, Any], key: ApiKey, *, has_default: bool) -> Order:
    """Read the body. Without `has_default` it must name a model, which Open Responses asks of every server. Raises Invalid."""
    for name in raw:
        if name not in COMPACTED:
            raise Invalid(f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    return requests.read({**raw, "store": False}, key, has_default=has_default)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/responses/{id}, as JSON or as the stream of its log (decision F3)."""
    streamed = query.boolean(request, "stream")
    after = query.integer(request, "starting_after", -1, least=0, most=LAST)
    obfuscate = query.boolean(request, "include_obfuscation", default=True)
    wanted = sealed.INCLUDE in query.include(request)
    if after >= 0 and not streamed:
        raise Invalid("'starting_after' needs 'stream=true'.", param="starting_after", code="invalid_value")
    row = await _find(key, uid)
    if settings.RESPONSES_STRICT_COMPAT:
        _as_at_openai(row, streamed)
    if streamed:
        replay.whole(row)
        return EventStream(_replay(row, after), Form(obfuscate, profile.is_open(request)))
    snapshot = await replay.snapshot(row.pk) or await unfinished(row)
    return answer(profile.told(request, sealed.filled(key.project, snapshot) if wanted else snapshot))


def _as_at_openai(row: Response, streamed: bool) -> None:
    """What OpenAI refuses and this server does not by itself (decision F3). Raises ApiError."""
    for asked, name in ((row.background, "background"), (row.streamed, "stream")):
        if streamed and not asked:
            raise Invalid(f"This response cannot be streamed because it was not created with {name}=true.")
    if not row.background and row.ended_at is None:
        raise _missing(row.uid)


async def cancel(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/responses/{id}/cancel: a background response that has not ended does so now, or has been cancelled before."""
    row = await _find(key, uid)
    if not row.background:
        raise Invalid("Cannot cancel a synchronous response.")
    await hub.current().end(row)
    # Read again: what the log says at last is the answer, and a completion may have been in it already.
    row = await _find(key, uid)
    if row.status in FINAL:
        raise Invalid(FINAL[Status(row.status)])
    return answer(profile.told(request, await replay.snapshot(row.pk) or await unfinished(row)))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/responses/{id}. A run that is under way is stopped first."""
    del request
    await hub.current().end(await _find(key, uid))
    if not await sync_to_async(erase)(key.project, uid):
        raise _missing(uid)
    return answer({"id": uid, "object": "response", "deleted": True})


async def input_items(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/responses/{id}/input_items: the request's own input and the history before it."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    order = query.choice(request, "order", "desc", ("asc", "desc"))
    include = query.include(request)
    after = query.cursor(request)
    row = await _find(key, uid)
    known = after is None or could_be(after)
    page = await inputs.page(row, limit=limit, newest_first=order == "desc", after=after) if known else None
    if page is None:
        raise NotFound(f"No item found with id '{after}'", param="after")
    bodies = (profile.told_item(request, body) for body in shown.bodies(key.project, page, include))
    return pages.listed(bodies, page.first, page.last, more=page.more)


async def _attend(run: Run, ticket: Ticket) -> AsyncGenerator[Frame | None, None]:
    try:
        async with aclosing(hub.current().attend(run)) as frames:
            async for frame in frames:
                if frame is not None and frame.type in replay.TERMINAL:
                    await ticket.give()
                yield frame
    finally:
        hub.current().abandon(run)


def _replay(row: Response, after: int) -> AsyncGenerator[Frame | None, None]:
    """The log of a run of this process is in memory while it lasts; any other is read from the database."""
    return hub.current().listen(row.uid, row.pk, after)


async def unfinished(row: Response) -> bytes:
    """The snapshot of a run that is under way: the items that are done so far."""
    return orjson.dumps(fold([orjson.loads(frame.data) async for frame in replay.stored(row.pk)]))


async def _find(key: ApiKey, uid: str) -> Response:
    # One of `store: false` that is kept for the sake of its conversation alone is nobody's to see.
    seen = Response.objects.filter(Q(stored=True) | Q(background=True), project=key.project, uid=uid)
    row = await seen.afirst() if could_be(uid) else None
    if row is None:
        raise _missing(uid)
    return row


def _missing(uid: str) -> NotFound:
    return NotFound(f"Response with id '{uid}' not found.")
