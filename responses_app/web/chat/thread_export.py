"""Downloads of a chat thread: Markdown to read, and JSON with the responses as the API returns them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import cast

import orjson
from asgiref.sync import sync_to_async
from django.http import HttpRequest, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from responses_app.models import Direction, Item, Response
from responses_app.store import audit_log
from responses_app.store.log import reader
from responses_app.utils.user_model import User
from responses_app.web.chat import threads
from responses_app.web.chat.thread_markdown import StoredTurn, heading, item_markdown, turn_markdown
from responses_app.web.chat.turns import chain_of
from responses_app.web.private import private
from responses_app.web.response.detail import get_response
from responses_app.wire.event_stream import partial_snapshot

MEDIA_TYPES = {"md": "text/markdown", "json": "application/json"}
MAX_NAME_CHARS = 60


@private("GET")
async def download(request: HttpRequest, uid: str, form: str) -> StreamingHttpResponse:
    """Send GET /chat/ID.FORM, `md` or `json`, as an attachment: the thread up to the response."""
    row, title = await sync_to_async(_thread)(request, uid)
    body = _markdown(row, title) if form == "md" else _json(row, title)
    response = StreamingHttpResponse(body, content_type=f"{MEDIA_TYPES[form]}; charset=utf-8")
    name = slugify(title, allow_unicode=True)[:MAX_NAME_CHARS] or row.uid
    response["Content-Disposition"] = content_disposition_header(True, f"{name}.{form}")
    return response


def _thread(request: HttpRequest, uid: str) -> tuple[Response, str]:
    row = get_response(request, uid)
    audit_log.record(audit_log.actor_of(request), "response.export", f"conversation {row.uid}", row.project)
    return row, threads.title_for(row, cast(User, request.user))


async def _markdown(row: Response, title: str) -> AsyncIterator[bytes]:
    yield _encoded(f"{heading(title, 1)}\n\n")
    instructions: str | None = None
    before: StoredTurn | None = None
    turn: StoredTurn | None = None
    async for following, context in _turns(row):
        if context:
            yield _encoded(await sync_to_async(item_markdown)([orjson.loads(body) for body in context], following.row))
        if turn is not None:
            yield _encoded(await sync_to_async(turn_markdown)(turn, before, following))
        changed = orjson.loads(following.snapshot).get("instructions")
        if changed != instructions and (instructions := changed):
            yield _encoded(f"{heading('Instructions')}\n\n{instructions}\n\n")
        before, turn = turn, following
    if turn is not None:
        yield _encoded(await sync_to_async(turn_markdown)(turn, before))


async def _json(row: Response, title: str) -> AsyncIterator[bytes]:
    """Yield an object with the title, the items before the first response, and the responses, each with its input."""
    yield b'{"title":' + orjson.dumps(title)
    start = b',"responses":['
    async for turn, context in _turns(row):
        yield (b',"context":' + _array(context) if context else b"") + start
        yield b'{"input":' + _array(turn.input) + b"," + turn.snapshot[1:]
        start = b","
    yield b"]}\n"


async def _turns(row: Response) -> AsyncIterator[tuple[StoredTurn, list[str]]]:
    """Yield the responses of the thread one by one, the first with the items of its context."""
    for place, link in enumerate(await sync_to_async(chain_of)(row)):
        stored = await Response.objects.filter(pk=link.pk).afirst()
        if stored is None:
            continue
        inputs = Item.objects.filter(response=stored, direction=Direction.INPUT).order_by("pk")
        bodies = [body async for body in inputs.values_list("body", flat=True)]
        snapshot = await reader.snapshot(stored.pk) or await partial_snapshot(stored)
        yield StoredTurn(stored, bodies, snapshot), [] if place else await _context(stored)


async def _context(row: Response) -> list[str]:
    bodies = {pk: body async for pk, body in Item.objects.filter(pk__in=row.history).values_list("pk", "body")}
    return [bodies[pk] for pk in row.history if pk in bodies]


def _array(bodies: Sequence[str]) -> bytes:
    return b"[" + ",".join(bodies).encode() + b"]"


def _encoded(text: str) -> bytes:
    # JSON can contain a lone surrogate, which UTF-8 cannot encode.
    return text.encode("utf-8", "replace")
