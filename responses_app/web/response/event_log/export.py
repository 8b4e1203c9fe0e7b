"""A response to take away: the snapshot as JSON, its events as JSON lines, the stream as it was sent; its items and their pictures."""

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
KINDS: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


@never_cache
@login_required
@require_safe
async def log(request: HttpRequest, uid: str, form: str) -> HttpResponseBase:
    """GET /responses/ID.json, .jsonl and .sse."""
    row = await sync_to_async(get_response)(request, uid)
    if form == "json":
        answer: HttpResponseBase = HttpResponse(
            await reader.snapshot(row.pk) or await partial_snapshot(row), content_type="application/json"
        )
    else:
        kind, told = FORMS[form]
        answer = StreamingHttpResponse(_header_value(row, told, form == "sse"), content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{row.uid}.{form}"'
    return answer


async def _header_value(row: Response, told: Callable[[EventFrame], bytes], sse: bool) -> AsyncIterator[bytes]:
    """All that the log holds, a page of it at a time. Deltas that are not kept any more are left out."""
    after = -1
    while found := await reader.frames(row.pk, after):
        yield b"".join(map(told, found))
        after = found[-1].number
    if sse and row.ended_at is not None:
        yield DONE


@never_cache
@login_required
@require_safe
def item(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """GET /responses/ID/items/ITEM: an item of the response, or of its history, in its wire form."""
    return HttpResponse(_item(request, uid, item).body, content_type="application/json")


@login_required
@require_safe
def image(request: HttpRequest, uid: str, item: str, place: int) -> HttpResponse:
    """GET /responses/ID/items/ITEM/images/N: a picture that came in with an item, out of the item or from beside it."""
    found = _item(request, uid, item)
    body: dict[str, Any] = json.loads(found.body)
    parts = body.get("content") or body.get("output") or []
    part = parts[place] if isinstance(parts, list) and place < len(parts) else None
    url = part.get("image_url") if isinstance(part, dict) else None
    data = _picture(found, url) if isinstance(url, str) else None
    kind = next((name for start, name in KINDS.items() if data and data.startswith(start)), None)
    if data is None or kind is None:
        raise Http404("This image isn’t stored.")
    answer = HttpResponse(data, content_type=kind)
    answer["Cache-Control"] = "private, max-age=3600"
    return answer


def _picture(item: Item, url: str) -> bytes | None:
    if decode.is_data_url(url):
        try:
            return decode.decode_data_url(url)
        except decode.InvalidImage:
            return None
    kept = Image.objects.filter(item=item, url=url).first()
    return None if kept is None else bytes(kept.data)


def _item(request: HttpRequest, uid: str, item: str) -> Item:
    row = get_response(request, uid)
    found = Item.objects.filter(uid=item, project=row.project).order_by("pk")
    mine = found.filter(response=row).first() or found.filter(pk__in=row.history).first()
    if mine is None:
        raise Http404("This response has no item with this ID.")
    return mine
