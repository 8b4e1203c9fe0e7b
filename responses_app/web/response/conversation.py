"""The conversation view of a response: what came in, what was said, and the calls and outputs that belong together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.models import Direction, Item, Response
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log import reader
from responses_app.store.log.event_index import outline
from responses_app.web.render.item_blocks import OUTPUT_SUFFIX, ItemBlock, ItemRenderer
from responses_app.web.render.log_events import events
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.outcome import outcome
from responses_app.web.response.timeline import timeline

# Of the items before this response so many are shown, the newest, when somebody asks for them.
EARLIER = 100
OWN = 500
# How many later outputs are looked through for those of this response's calls.
LATER = 200


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID."""
    row = get_response(request, uid)
    earlier = bool(number(request, "earlier", 0))
    reading = ItemRenderer()
    before = reading.blocks(_items(row.history[-EARLIER:]), incoming=True) if earlier else []
    own = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    asked = reading.blocks(map(json.loads, own[:OWN]), incoming=True)
    said, snapshot = _said(row)
    answered = reading.blocks(said, incoming=False)
    _answered_later(row, answered)
    return render_page(
        request,
        row,
        "response",
        "web/conversation.html",
        before=before,
        earlier=earlier,
        most_earlier=EARLIER,
        hidden=len(row.history) - len(row.history[-EARLIER:] if earlier else []),
        asked=asked,
        answered=answered,
        instructions=snapshot.get("instructions"),
        outcome=outcome(row, snapshot),
        timeline=timeline(outline(row.pk)),
    )


def _items(keys: Sequence[int]) -> list[dict[str, Any]]:
    bodies = dict(Item.objects.filter(pk__in=keys).values_list("pk", "body"))
    return [json.loads(bodies[key]) for key in keys if key in bodies]


def _said(row: Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The output and the snapshot: of one that runs as far as it was told."""
    end = reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").first()
    last = reader.terminal_snapshot(end) if end is not None else None
    if last is not None:
        snapshot = json.loads(last)
        return snapshot["output"], snapshot
    try:
        snapshot = fold(events(row.pk), open_items=True)
    except ProtocolError:
        return [], {}
    return snapshot["output"], snapshot


def _answered_later(row: Response, blocks: Sequence[ItemBlock]) -> None:
    """Say where the output of a call is that a later response of the thread was given."""
    waiting = {
        block.call_id: block for block in blocks if block.call_id and block.pair is None and not block.type.endswith(OUTPUT_SUFFIX)
    }
    if not waiting:
        return
    later = Item.objects.filter(response__thread=row.thread, response__project=row.project, direction=Direction.INPUT)
    outputs = later.filter(response_id__gt=row.pk, type__endswith=OUTPUT_SUFFIX).order_by("pk").values_list("body", "response__uid")
    for body, uid in outputs[:LATER]:
        item = json.loads(body)
        block = waiting.pop(str(item.get("call_id")), None)
        if block is not None:
            block.pair = ItemRenderer().blocks([item], incoming=True)[0]
            block.output_response = uid
