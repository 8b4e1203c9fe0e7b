"""Event list of a response with grouped deltas, and the page of an event with the response state after the event."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse

from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log.event_index import EventHeader, event_headers, events_by_number
from responses_app.web.private import private
from responses_app.web.render.block_parts import picture_part
from responses_app.web.render.item_blocks import TEMPLATES, ItemBlock
from responses_app.web.render.log_events import events
from responses_app.web.render.result_pictures import picture_urls
from responses_app.web.render.sanitize import pretty_json, truncate, visible
from responses_app.web.response.conversation import takeover_notices
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.items import item_renderer, set_durations
from responses_app.web.response.problem_notice import problems_of
from responses_app.web.response.selection.selected import selected_item
from responses_app.web.response.timelines.event_groups import EventGroup, group
from responses_app.web.response.timelines.event_kinds import KINDS, LABELS, event_kind
from responses_app.web.response.timelines.item_spans import item_spans
from responses_app.web.response.timelines.timeline import timeline

PAGE_LINES = 200
# Characters of the payload excerpt of a line, as in response.js.
MAX_EXCERPT_CHARS = 140
# Deltas of a group are read in these steps, until their text fills the excerpt. Most tokens have more than three characters.
READ_STEPS = (12, 36, 96)
# Fields of a snapshot in the excerpt. All other fields are the same in all snapshots.
SNAPSHOT_FIELDS = ("status", "error", "incomplete_details", "usage", "model")
MAX_JSON_CHARS = 60_000
# Characters of the state as JSON, and of each text in it.
MAX_STATE_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class EventLine:
    """Line of the event list: a group of events with an excerpt of the payload. `uid` is the id of their item, if they have one."""

    group: EventGroup
    excerpt: str
    uid: str = ""


@private("GET", "HEAD")
def index(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/events."""
    row = get_response(request, uid)
    after, opened = number(request, "after"), number(request, "open")
    headers = event_headers(row.pk, max(after - 1, -1) if after >= 0 else -1)
    before = headers[0].ms if headers and after >= 0 else 0
    headers = [header for header in headers if header.number > after]
    chosen = [name for name in KINDS if name in request.GET.getlist("kind")]
    shown = [header for header in headers if event_kind(header.type) in chosen] if chosen else headers
    groups = group(shown, opened=_run(shown, opened), before=before)
    page = groups[:PAGE_LINES]
    return render_page(
        request,
        row,
        "response-events",
        "web/events.html",
        lines=_lines(row.pk, page),
        problems=problems_of(row) if after < 0 else [],
        kinds=LABELS.items(),
        chosen=chosen,
        kind_query="".join(f"kind={name}&" for name in chosen),
        after=after,
        opened=opened,
        previous=_previous_page(row.pk, after) if after >= 0 else None,
        following=page[-1].last.number if len(groups) > PAGE_LINES else None,
        timeline=timeline(headers, item_spans(row.pk, headers), row.takeovers) if after < 0 else None,
        takeovers=list(takeover_notices(row, headers)) if after < 0 else [],
    )


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str, place: int) -> HttpResponse:
    """Render GET /responses/ID/events/N: the event, and the response state after the event."""
    row = get_response(request, uid)
    frame = _frame(row.pk, place)
    form = request.GET.get("as")
    if form == "json":
        return HttpResponse(frame.data, content_type="application/json")
    state = _state_after(row.pk, place)
    if form == "folded":
        return HttpResponse(orjson.dumps(state), content_type="application/json")
    event, headers = orjson.loads(frame.data), event_headers(row.pk)
    spans = item_spans(row.pk, headers)
    drawn = timeline(headers, spans, row.takeovers)
    text, left_out = truncate(pretty_json(event), MAX_JSON_CHARS)
    state_text, state_left_out = truncate(pretty_json(state), MAX_STATE_CHARS)
    output = cast("list[dict[str, Any]]", state["output"]) if state else []
    renderer = item_renderer(row, output)
    renderer.max_text_chars = MAX_STATE_CHARS
    blocks = renderer.blocks(output)
    set_durations(blocks, [header for header in headers if header.number <= place], spans)
    return render_page(
        request,
        row,
        "response-events",
        "web/event.html",
        frame=frame,
        text=text,
        left_out=left_out,
        pictures=_pictures(event.get("item")),
        selected=selected_item(row, item_of(event)),
        # Without the rates, which are on the page of all events.
        timeline=replace(drawn, bars=()) if drawn else None,
        state=state_text,
        state_status=(state or {}).get("status"),
        state_blocks=blocks,
        item_templates=TEMPLATES,
        state_left_out=state_left_out,
    )


@private("GET", "HEAD")
def times(request: HttpRequest, uid: str) -> HttpResponse:
    """Send GET /responses/ID/events/times: the milliseconds of each event, in order."""
    row = get_response(request, uid)
    return JsonResponse([header.ms for header in event_headers(row.pk)], safe=False)


def _pictures(item: Mapping[str, Any] | None) -> ItemBlock | None:
    """Return a block with the pictures in the item of an event; None without pictures."""
    urls = picture_urls(item) if item is not None else ()
    if item is None or not urls:
        return None
    parts = [picture_part(position, url) for position, url in enumerate(urls)]
    return ItemBlock(item, parts)


def _frame(pk: int, place: int) -> EventFrame:
    frame = events_by_number(pk, [place]).get(place) if place < 2**31 else None
    if frame is None:
        raise Http404("This response has no event with this number.")
    return frame


def _state_after(pk: int, place: int) -> Mapping[str, object] | None:
    try:
        return fold(events(pk, place), open_items=True)
    except ProtocolError:
        # The log lacks its deltas, so the later events cannot be reduced.
        return None


def _run(headers: Sequence[EventHeader], opened: int) -> range:
    """Return the numbers of the run of deltas that starts at number `opened`."""
    start = next((index for index, header in enumerate(headers) if header.number == opened), None)
    if start is None:
        return range(0)
    end = start
    while end < len(headers) and headers[end].type == headers[start].type:
        end += 1
    return range(opened, headers[end - 1].number + 1)


def _lines(pk: int, groups: Sequence[EventGroup]) -> list[EventLine]:
    texts, uids = ["" for _ in groups], ["" for _ in groups]
    read = 0
    for step in READ_STEPS:
        # A group with enough text needs no more events.
        selected = [
            part.headers[read : read + step] if len(text) <= MAX_EXCERPT_CHARS else ()
            for part, text in zip(groups, texts, strict=True)
        ]
        frames = events_by_number(pk, [header.number for headers in selected for header in headers])
        for index, headers in enumerate(selected):
            parts = [_text(frames[header.number]) for header in headers if header.number in frames]
            texts[index] += "".join(text for text, _ in parts)
            uids[index] = uids[index] or next((uid for _, uid in parts), "")
        read += step
    return [
        EventLine(part, _excerpt(text, has_more=len(part.headers) > read), uid)
        for part, text, uid in zip(groups, texts, uids, strict=True)
    ]


def _text(frame: EventFrame) -> tuple[str, str]:
    """Return the text of a delta, or the distinctive fields of any other event, and the id of the item."""
    # Parsing a long event costs too much for an excerpt.
    if len(frame.data) > MAX_JSON_CHARS:
        return f"{len(frame.data)} bytes", ""
    event = orjson.loads(frame.data)
    delta = event.get("delta")
    response = event.get("response")
    if isinstance(response, dict):
        return orjson.dumps({key: response[key] for key in SNAPSHOT_FIELDS if response.get(key) is not None}).decode(), ""
    other_fields = {key: value for key, value in event.items() if key not in ("type", "sequence_number", "item_id")}
    if isinstance(item := event.get("item"), dict):
        # An id is long and the same in many lines.
        other_fields["item"] = {key: value for key, value in item.items() if key != "id"}
    return delta if isinstance(delta, str) else orjson.dumps(other_fields).decode(), item_of(event)


def item_of(event: Mapping[str, Any]) -> str:
    """Return the id of the item of an event, empty without one."""
    item = event.get("item")
    return str(event.get("item_id") or (item.get("id") if isinstance(item, Mapping) else "") or "")


def _excerpt(text: str, *, has_more: bool) -> str:
    """Return the beginning of the text, with an ellipsis for omitted text."""
    return visible(text[:MAX_EXCERPT_CHARS]) + ("…" if has_more or len(text) > MAX_EXCERPT_CHARS else "")


def _previous_page(pk: int, after: int) -> int:
    """Return `after` of the previous page, -1 for the first. Pages have `PAGE_LINES` groups, so all events are grouped again."""
    groups = [part for part in group(event_headers(pk)) if part.last.number <= after]
    return groups[-PAGE_LINES - 1].last.number if len(groups) > PAGE_LINES else -1
