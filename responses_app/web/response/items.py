"""HTML fragments of items, the only ones: response page, chat and scripts show the same HTML for an item."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import orjson
from django.db.models.functions import Substr
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from responses_app.images.decode import HEADER_CHARS, ImageSize, is_data_url, size_of
from responses_app.models import Direction, Image, Item, Response
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.reducer import fold
from responses_app.store.content import tool_outputs
from responses_app.store.log import reader
from responses_app.store.log.event_index import EventHeader, event_headers, events_by_number
from responses_app.web.private import private
from responses_app.web.render.item_blocks import OUTPUT_TYPES, ItemBlock, ItemRenderer, call_id_of, image_source
from responses_app.web.render.log_events import events
from responses_app.web.response.detail import get_response
from responses_app.web.response.selection.selected import selected_item
from responses_app.web.response.timelines.item_spans import ADDED, DONE, ItemSpan, item_spans, tool_durations
from responses_app.web.response.timelines.times import reasoning_times

# Later tool outputs of the thread that are searched for the calls of the response.
MAX_LATER_OUTPUTS: Final = 200
# Characters of a text with `?whole`, and of the Markdown of a conversation.
MAX_WHOLE_CHARS: Final = 300_000
SERVER_TOOL_TYPES: Final = frozenset(family.type for family in FAMILIES.values() if family.runs_on_server)
NO_ITEM: Final = "This response has no item with this ID."


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """Render GET /responses/ID/items/ITEM/fragment: an item of a running or an ended response.

    `answer` is the id of the response with the output of a call, without the parameter the first one of the thread. With `whole` a
    long message is not truncated.
    """
    row = get_response(request, uid)
    output = output_of(row)[0] if row.ended_at is not None else _logged_items(row)
    shown = next((one for one in output if one.get("id") == item), None)
    if shown is None:
        stored = Item.objects.filter(uid=item, project=row.project, response=row).first()
        if stored is None:
            raise Http404(NO_ITEM)
        output = [shown := json.loads(stored.body)]
    renderer = item_renderer(row, [shown])
    if "whole" in request.GET:
        renderer.max_text_chars = renderer.markdown_budget = MAX_WHOLE_CHARS
    (block,) = renderer.blocks([shown])
    attach_later_outputs(row, [block], request.GET.get("answer", ""))
    if block.shape != "message":
        headers = event_headers(row.pk)
        # The blocks of all output, because the times of reasoning are in its order.
        siblings = [block if one is shown else ItemBlock(one, []) for one in output]
        set_durations(siblings, headers, item_spans(row.pk, headers))
    return HttpResponse(fragment(row, block))


def item_renderer(row: Response, items: Sequence[dict[str, Any]]) -> ItemRenderer:
    """Return a renderer with what is stored about `items`: outputs of server tools, and sizes of images that are no data URLs."""
    return ItemRenderer(tool_outputs=tool_outputs.summaries(row.project, items), picture_sizes=_picture_sizes(row, items))


def _picture_sizes(row: Response, items: Iterable[dict[str, Any]]) -> dict[tuple[str, str], ImageSize]:
    contents = [content for one in items if isinstance(content := one.get("content"), list)]
    sources = {image_source(part) for content in contents for part in content if part.get("type") == "input_image"}
    stored = [source for source in sources if source and not is_data_url(source)]
    if not stored:
        return {}
    uids = [one["id"] for one in items if one.get("type") == "message"]
    images = Image.objects.filter(item__uid__in=uids, item__project=row.project, url__in=stored).order_by("pk")
    starts = images.annotate(start=Substr("data", 1, HEADER_CHARS)).values_list("item__uid", "url", "start")
    return {(uid, url): size for uid, url, start in starts if (size := size_of(bytes(cast("memoryview", start)))) is not None}


@private("GET", "HEAD")
def selected(request: HttpRequest, uid: str, item: str) -> HttpResponse:
    """Render GET /responses/ID/items/ITEM/selected: the part of the inspector about a selected item."""
    row = get_response(request, uid)
    chosen = selected_item(row, item)
    if chosen is None:
        raise Http404(NO_ITEM)
    return render(request, "web/selected.html", {"row": row, "selected": chosen})


def fragment(row: Response, block: ItemBlock) -> str:
    """Return the HTML of an item of the response."""
    return render_to_string("web/block.html", {"row": row, "block": block}).strip()


def thread_fragments(
    turns: Sequence[tuple[Response, Sequence[Mapping[str, Any]], Sequence[Mapping[str, Any]]]],
) -> dict[str, dict[str, str]]:
    """Return the fragments by id of the response and id of the item, for responses of a thread with input and output, oldest first.

    An output of a call in a later input stands beside the call.
    """
    renderer = ItemRenderer(markdown_budget=MAX_WHOLE_CHARS)
    turn_blocks: list[tuple[Response, list[ItemBlock], list[ItemBlock]]] = []
    for row, inputs, output in turns:
        input_blocks = renderer.blocks(inputs)
        for call in turn_blocks[-1][2] if turn_blocks else ():
            call.output_response = call.output_response or (row.uid if call.pair is not None else "")
        renderer.tool_outputs = tool_outputs.summaries(row.project, output)
        turn_blocks.append((row, input_blocks, renderer.blocks(output)))
    for row, _, output_blocks in turn_blocks:
        if any(block.type in SERVER_TOOL_TYPES or block.shape == "reasoning" for block in output_blocks):
            headers = event_headers(row.pk)
            set_durations(output_blocks, headers, item_spans(row.pk, headers))
    return {row.uid: {block.uid: fragment(row, block) for block in [*before, *after]} for row, before, after in turn_blocks}


def set_durations(blocks: Sequence[ItemBlock], headers: Sequence[EventHeader], spans: Sequence[ItemSpan]) -> None:
    """Set the durations of reasoning and of tools, from the log with `headers` and `spans`. `blocks` are all output."""
    thoughts = iter([*reasoning_times((header.type, header.ms) for header in headers)])
    durations = tool_durations(spans)
    for block in blocks:
        if block.shape == "reasoning" and block.item.get("status") != "in_progress":
            seconds = next(thoughts, None)
            block.took_ms = None if seconds is None else round(seconds * 1000)
        elif block.item.get("status") != "in_progress":
            block.took_ms = durations.get(block.uid)


def output_of(row: Response) -> tuple[list[dict[str, Any]], dict[str, Any]]:
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


def attach_later_outputs(row: Response, blocks: Sequence[ItemBlock], answer: str = "") -> None:
    """Attach tool outputs from the input of later responses of the thread, or of the response `answer`, to the calls in `blocks`."""
    open_calls = {
        block.call_id: block for block in blocks if block.call_id and block.pair is None and block.type not in OUTPUT_TYPES
    }
    if not open_calls:
        return
    later = Item.objects.filter(response__thread=row.thread, response__project=row.project, direction=Direction.INPUT)
    outputs = later.filter(response_id__gt=row.pk, type__in=OUTPUT_TYPES, **({"response__uid": answer} if answer else {}))
    for body, uid in outputs.order_by("pk").values_list("body", "response__uid")[:MAX_LATER_OUTPUTS]:
        item = json.loads(body)
        block = open_calls.pop(call_id_of(item), None)
        if block is not None:
            (block.pair,) = ItemRenderer().blocks([item])
            block.output_response = uid


def _logged_items(row: Response) -> list[dict[str, Any]]:
    """Return the items of a running response, an item that is not done as it was added."""
    numbers = [header.number for header in event_headers(row.pk) if header.type in (ADDED, DONE)]
    logged: dict[int, dict[str, Any]] = {}
    for _, frame in sorted(events_by_number(row.pk, numbers).items()):
        event = orjson.loads(frame.data)
        logged[event["output_index"]] = event["item"]
    return [logged[index] for index in sorted(logged)]
