"""Downloads of a response: snapshot as JSON, events as JSON Lines or SSE, items and images."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.images import decode
from responses_app.models import Image, Item, Response
from responses_app.store.log import reader
from responses_app.store.log.records import EventFrame
from responses_app.web.response.detail import get_response
from responses_app.wire.event_stream import partial_snapshot
from responses_app.wire.sse import DONE, encode

FORMS: Final[dict[str, tuple[str, Callable[[EventFrame], bytes]]]] = {
    "jsonl": ("application/x-ndjson", lambda frame: frame.data + b"\n"),
    "sse": ("text/event-stream", encode),
}
MEDIA_TYPES: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


@never_cache
@login_required
@require_safe
async def log(request: HttpRequest, uid: str, form: str) -> HttpResponseBase:
    """Send GET /responses/ID.json, .jsonl and .sse as an attachment."""
    row = await sync_to_async(get_response)(request, uid)
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


@never_cache
@login_required
@require_safe
def item(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """Send GET /responses/ID/items/ITEM: an item of the response or of the context, as JSON."""
    return HttpResponse(_item(request, uid, item).body, content_type="application/json")


@login_required
@require_safe
def image(request: HttpRequest, uid: str, item: str, place: int) -> HttpResponse:
    """Send GET /responses/ID/items/ITEM/images/N: an image in the input, inline or downloaded by the server."""
    row = _item(request, uid, item)
    body: dict[str, Any] = json.loads(row.body)
    parts = body.get("content") or body.get("output") or []
    part = parts[place] if isinstance(parts, list) and place < len(parts) else None
    url = (part.get("image_url") or part.get("file_id")) if isinstance(part, dict) else None
    data = _image_data(row, url) if isinstance(url, str) else None
    media_type = next((name for start, name in MEDIA_TYPES.items() if data and data.startswith(start)), None)
    if data is None or media_type is None:
        raise Http404("This image isn’t stored.")
    response = HttpResponse(data, content_type=media_type)
    response["Cache-Control"] = "private, max-age=3600"
    return response


def _image_data(item: Item, url: str) -> bytes | None:
    if decode.is_data_url(url):
        try:
            return decode.decode_data_url(url)
        except decode.InvalidImage:
            return None
    stored = Image.objects.filter(item=item, url=url).first()
    return None if stored is None else bytes(stored.data)


def _item(request: HttpRequest, uid: str, item: str) -> Item:
    row = get_response(request, uid)
    items = Item.objects.filter(uid=item, project=row.project).order_by("pk")
    match = items.filter(response=row).first() or items.filter(pk__in=row.history).first()
    if match is None:
        raise Http404("This response has no item with this ID.")
    return match
