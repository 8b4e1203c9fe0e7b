"""Conversation page of a response: input and output items, with calls next to outputs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from responses_app.models import Direction, Item, Response
from responses_app.store.cluster import leases
from responses_app.store.log.event_index import EventHeader, event_headers
from responses_app.web.private import private
from responses_app.web.render.item_blocks import TEMPLATES
from responses_app.web.render.item_titles import duration_text
from responses_app.web.response import items
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.outcome import outcome
from responses_app.web.response.problem_notice import problem_notices
from responses_app.web.response.timelines.item_spans import item_spans
from responses_app.web.response.timelines.timeline import timeline
from responses_app.web.responses.ids import response_id

# Items of the context before the response that `?earlier=1` shows, the newest ones.
MAX_EARLIER_ITEMS = 100
MAX_INPUT_ITEMS = 200
WAITING = "The process that ran this response has ended. Another process that serves the model continues it within seconds."


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID. The id of a completion or a message leads to its response."""
    if response_id(uid) != uid:
        return redirect("response", response_id(uid))
    row = get_response(request, uid)
    earlier = bool(number(request, "earlier", 0))
    past = _items(row.history[-MAX_EARLIER_ITEMS:]) if earlier else []
    window = _input_window(request, row)
    bodies = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    input_items = [json.loads(body) for body in bodies[window.start : window.end]]
    output, snapshot = items.output_of(row)
    renderer = items.item_renderer(row, [*past, *input_items, *output])
    before = renderer.blocks(past)
    input_blocks = renderer.blocks(input_items)
    output_blocks = renderer.blocks(output)
    items.attach_later_outputs(row, output_blocks)
    headers = event_headers(row.pk)
    spans = item_spans(row.pk, headers)
    items.set_durations(output_blocks, headers, spans)
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
        window=window,
        output_blocks=output_blocks,
        item_templates=TEMPLATES,
        instructions=snapshot.get("instructions"),
        outcome=outcome(row, snapshot),
        waits_for_approval=any(block.type == "mcp_approval_request" and block.pair is None for block in output_blocks),
        problems=problem_notices(snapshot),
        timeline=timeline(headers, spans, row.takeovers),
        takeovers=list(takeover_notices(row, headers)),
    )


@private("GET", "HEAD")
def takeovers(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /responses/ID/takeovers: the notices about take-overs, which an open page asks for."""
    row = get_response(request, uid)
    notices = takeover_notices(row, event_headers(row.pk) if row.takeovers else ())
    return render(request, "web/takeovers.html", {"row": row, "takeovers": list(notices)})


@dataclass(frozen=True, slots=True)
class InputWindow:
    """Places of the shown items in the input of `count` items."""

    start: int
    end: int
    count: int

    @property
    def later_end(self) -> int:
        """Return the end of the window behind this one."""
        return min(self.end + MAX_INPUT_ITEMS, self.count)

    @property
    def later(self) -> int:
        """Return the number of items behind this window."""
        return self.count - self.end


def _input_window(request: HttpRequest, row: Response) -> InputWindow:
    """Return the window that ends at the place `input` of the query, has the selected item, or ends with the last item."""
    keys = list(Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("uid", flat=True))
    end = number(request, "input", len(keys))
    selected = request.GET.get("selected", "")
    if "input" not in request.GET and selected in keys:
        end = (keys.index(selected) // MAX_INPUT_ITEMS + 1) * MAX_INPUT_ITEMS
    end = min(max(end, MAX_INPUT_ITEMS), len(keys))
    return InputWindow(max(end - MAX_INPUT_ITEMS, 0), end, len(keys))


def _items(keys: Sequence[int]) -> list[dict[str, Any]]:
    bodies = dict(Item.objects.filter(pk__in=keys).values_list("pk", "body"))
    return [json.loads(bodies[key]) for key in keys if key in bodies]


def takeover_notices(row: Response, headers: Sequence[EventHeader]) -> Iterator[str]:
    """Yield a sentence for each take-over, and for a response that waits for one."""
    times = {header.number: header.ms for header in headers}
    is_waiting = row.ended_at is None and leases.is_abandoned(row.pk)
    for last_event in row.takeovers or ():
        if last_event not in times:
            continue
        ended = (
            f"The process that ran this response ended. Its last event came after {duration_text(times[last_event] / 1000)}; "
        )
        if last_event + 1 in times:
            yield f"{ended}another process continued after {duration_text(times[last_event + 1] / 1000)}."
        elif row.ended_at is None and not is_waiting:
            yield f"{ended}another process is continuing the response."
    if is_waiting:
        yield WAITING
