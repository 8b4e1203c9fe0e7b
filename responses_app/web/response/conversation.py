"""Conversation page of a response: input and output items, with calls next to outputs."""

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
from responses_app.store.content import tool_outputs
from responses_app.store.log import reader
from responses_app.store.log.event_index import event_headers
from responses_app.web.render.item_blocks import OUTPUT_TYPES, ItemBlock, ItemRenderer, call_id_of
from responses_app.web.render.log_events import events
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.outcome import outcome
from responses_app.web.response.problem_notice import problem_notices
from responses_app.web.response.timelines import tool_timeline
from responses_app.web.response.timelines.timeline import timeline

# Items of the context before the response that `?earlier=1` shows, the newest ones.
MAX_EARLIER_ITEMS = 100
MAX_INPUT_ITEMS = 500
# Later tool outputs of the thread that are searched for the calls of the response.
MAX_LATER_OUTPUTS = 200


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID."""
    row = get_response(request, uid)
    earlier = bool(number(request, "earlier", 0))
    past = _items(row.history[-MAX_EARLIER_ITEMS:]) if earlier else []
    bodies = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    input_items = [json.loads(body) for body in bodies[:MAX_INPUT_ITEMS]]
    output, snapshot = _output(row)
    renderer = ItemRenderer(tool_outputs=tool_outputs.summaries(row.project, [*past, *input_items, *output]))
    before = renderer.blocks(past, incoming=True)
    input_blocks = renderer.blocks(input_items, incoming=True)
    output_blocks = renderer.blocks(output, incoming=False)
    _attach_later_outputs(row, output_blocks)
    headers = event_headers(row.pk)
    tools = tool_timeline.tool_timeline(row.pk, headers)
    for block in output_blocks:
        block.took_ms = tools.durations.get(block.uid) if tools is not None else None
    return render_page(
        request,
        row,
        "response",
        "web/conversation.html",
        before=before,
        earlier=earlier,
        max_earlier=MAX_EARLIER_ITEMS,
        hidden=len(row.history) - len(row.history[-MAX_EARLIER_ITEMS:] if earlier else []),
        input_blocks=input_blocks,
        output_blocks=output_blocks,
        instructions=snapshot.get("instructions"),
        outcome=outcome(row, snapshot),
        problems=problem_notices(snapshot),
        timeline=timeline(headers),
        tool_timeline=tools,
    )


def _items(keys: Sequence[int]) -> list[dict[str, Any]]:
    bodies = dict(Item.objects.filter(pk__in=keys).values_list("pk", "body"))
    return [json.loads(bodies[key]) for key in keys if key in bodies]


def _output(row: Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the output items and the snapshot, for a running response from the events so far."""
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


def _attach_later_outputs(row: Response, blocks: Sequence[ItemBlock]) -> None:
    """Attach tool outputs from the input of later responses of the thread to the calls in `blocks`."""
    open_calls = {
        block.call_id: block for block in blocks if block.call_id and block.pair is None and block.type not in OUTPUT_TYPES
    }
    if not open_calls:
        return
    later = Item.objects.filter(response__thread=row.thread, response__project=row.project, direction=Direction.INPUT)
    outputs = later.filter(response_id__gt=row.pk, type__in=OUTPUT_TYPES).order_by("pk").values_list("body", "response__uid")
    for body, uid in outputs[:MAX_LATER_OUTPUTS]:
        item = json.loads(body)
        block = open_calls.pop(call_id_of(item), None)
        if block is not None:
            block.pair = ItemRenderer().blocks([item], incoming=True)[0]
            block.output_response = uid
