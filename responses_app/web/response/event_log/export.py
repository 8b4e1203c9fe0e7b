"""Downloads of a response: snapshot as JSON, events as JSON Lines or SSE, items and images."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_safe

from responses_app.images import decode
from responses_app.models import Image, Item, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store import audit_log
from responses_app.store.content import tool_outputs
from responses_app.store.content.tool_outputs import ITEM_TYPES
from responses_app.store.log import reader
from responses_app.web.private import private
from responses_app.web.render.log_events import events
from responses_app.web.render.result_pictures import media_type_of, picture_urls
from responses_app.web.render.sanitize import readable
from responses_app.web.response.detail import get_response, number
from responses_app.web.response.items import item_renderer
from responses_app.wire.event_stream import partial_snapshot
from responses_app.wire.sse import DONE, encode

FORMS: Final[dict[str, tuple[str, Callable[[EventFrame], bytes]]]] = {
    "jsonl": ("application/x-ndjson", lambda frame: frame.data + b"\n"),
    "sse": ("text/event-stream", encode),
}
NO_ITEM: Final = "This response has no item with this ID."


@private("GET", "HEAD")
async def log(request: HttpRequest, uid: str, form: str) -> HttpResponseBase:
    """Send GET /responses/ID.json, .jsonl and .sse as an attachment."""
    row = await sync_to_async(get_response)(request, uid)
    exported = (audit_log.actor_of(request), "response.export", f"response {row.uid}", row.project)
    await sync_to_async(audit_log.record)(*exported)
    if form == "json":
        response: HttpResponseBase = HttpResponse(
            await reader.snapshot(row.pk) or await partial_snapshot(row), content_type="application/json"
        )
    else:
        media_type, encode_frame = FORMS[form]
        response = StreamingHttpResponse(_body(row, encode_frame, form == "sse"), content_type=f"{media_type}; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{row.uid}.{form}"'
    return response


async def _body(row: Response, encode_frame: Callable[[EventFrame], bytes], sse: bool) -> AsyncIterator[bytes]:
    """Yield the encoded events, a page of the log at a time, without deleted deltas."""
    after = -1
    while page := await reader.frames(row.pk, after):
        yield b"".join(map(encode_frame, page))
        after = page[-1].number
    if sse and row.ended_at is not None:
        yield DONE


@private("GET", "HEAD")
def item(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """Send GET /responses/ID/items/ITEM: an item of the response or of the context, as JSON."""
    row = get_response(request, uid)
    stored = _stored_item(row, item)
    body = stored.body if stored is not None else json.dumps(_logged_item(row, item))
    if body == "null":
        raise Http404(NO_ITEM)
    return HttpResponse(body, content_type="application/json")


@private("GET", "HEAD")
def text(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """Send GET /responses/ID/items/ITEM/text: the whole text of the part `part` of the item that pages show shortened."""
    row = get_response(request, uid)
    stored = _stored_item(row, item)
    body = _logged_item(row, item) if stored is None else json.loads(stored.body)
    if body is None:
        raise Http404(NO_ITEM)
    (block,) = item_renderer(row, [body]).blocks([body])
    place = number(request, "part")
    whole = block.parts[place].whole if 0 <= place < len(block.parts) else ""
    if not whole:
        raise Http404("This item has no such text.")
    response = HttpResponse(readable(whole), content_type="text/plain; charset=utf-8")
    response["X-Content-Type-Options"] = "nosniff"
    return response


@login_required
@require_safe
def image(request: HttpRequest, uid: str, item: str, place: int) -> HttpResponse:
    """Send GET /responses/ID/items/ITEM/images/N: an image in the input, or in the result of a tool that the server ran."""
    response_row = get_response(request, uid)
    row = _stored_item(response_row, item)
    body: dict[str, Any] | None = _logged_item(response_row, item) if row is None else json.loads(row.body)
    if body is None:
        raise Http404(NO_ITEM)
    data = _result_picture(response_row, body, place) if body["type"] in ITEM_TYPES else _input_image(row, body, place)
    media_type = None if data is None else media_type_of(data)
    if data is None or media_type is None:
        raise Http404("This image isn’t stored.")
    response = HttpResponse(data, content_type=media_type)
    response["X-Content-Type-Options"] = "nosniff"
    response["Content-Disposition"] = f'inline; filename="image_{place + 1}.{media_type.partition("/")[2]}"'
    response["Cache-Control"] = "private, max-age=3600"
    return response


def _input_image(item: Item | None, body: Mapping[str, Any], place: int) -> bytes | None:
    parts = body.get("content") or body.get("output") or []
    part = parts[place] if isinstance(parts, list) and place < len(parts) else None
    url = (part.get("image_url") or part.get("file_id")) if isinstance(part, dict) else None
    if not isinstance(url, str):
        return None
    if decode.is_data_url(url):
        return _decoded(url)
    stored = Image.objects.filter(item=item, url=url).first() if item is not None else None
    return None if stored is None else bytes(stored.data)


def _result_picture(row: Response, body: Mapping[str, Any], place: int) -> bytes | None:
    """Return a picture in the item of a server tool, or behind these a picture that only the model got."""
    urls = picture_urls(body)
    data = _decoded(urls[place]) if place < len(urls) else tool_outputs.picture(row.project, body["id"], place - len(urls))
    return data if data is not None and len(data) <= decode.MAX_BYTES else None


def _decoded(url: str) -> bytes | None:
    try:
        return decode.decode_data_url(url)
    except decode.InvalidImage:
        return None


def _stored_item(row: Response, item: str) -> Item | None:
    items = Item.objects.filter(uid=item, project=row.project).order_by("pk")
    return items.filter(response=row).first() or items.filter(pk__in=row.history).first()


def _logged_item(row: Response, item: str) -> dict[str, Any] | None:
    """Return an item of a response that has not ended, from the log: the rows of output items are written at the end."""
    for event in events(row.pk) if row.ended_at is None else ():
        if event["type"] == "response.output_item.done" and event["item"]["id"] == item:
            return dict(event["item"])
    return None
