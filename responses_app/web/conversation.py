"""The conversation view of a response: what came in, what was said, and the calls and outputs that belong together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.grammar.errors import GrammarError
from responses_app.grammar.fold import fold
from responses_app.models import Direction, Item, Response
from responses_app.store import replay
from responses_app.store.outline import outline
from responses_app.web.blocks import OUTPUT, Block, Reading
from responses_app.web.found import find, number, page
from responses_app.web.outcome import outcome
from responses_app.web.reading import events
from responses_app.web.timeline import timeline

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
    row = find(request, uid)
    earlier = bool(number(request, "earlier", 0))
    reading = Reading()
    before = reading.blocks(_items(row.history[-EARLIER:]), incoming=True) if earlier else []
    own = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    asked = reading.blocks(map(json.loads, own[:OWN]), incoming=True)
    said, snapshot = _said(row)
    answered = reading.blocks(said, incoming=False)
    _answered_later(row, answered)
    return page(
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
    end = replay.ends(Response.objects.filter(pk=row.pk)).only("pk").first()
    last = replay.terminal(end) if end is not None else None
    if last is not None:
        snapshot = json.loads(last)
        return snapshot["output"], snapshot
    try:
        snapshot = fold(events(row.pk), open_items=True)
    except GrammarError:
        return [], {}
    return snapshot["output"], snapshot


def _answered_later(row: Response, blocks: Sequence[Block]) -> None:
    """Say where the output of a call is that a later response of the thread was given."""
    waiting = {
        block.call_id: block for block in blocks if block.call_id and block.pair is None and not block.type.endswith(OUTPUT)
    }
    if not waiting:
        return
    later = Item.objects.filter(response__thread=row.thread, response__project=row.project, direction=Direction.INPUT)
    outputs = later.filter(response_id__gt=row.pk, type__endswith=OUTPUT).order_by("pk").values_list("body", "response__uid")
    for body, uid in outputs[:LATER]:
        item = json.loads(body)
        block = waiting.pop(str(item.get("call_id")), None)
        if block is not None:
            block.pair = Reading().blocks([item], incoming=True)[0]
            block.elsewhere = uid
