"""The log of one response for the admin: a page of its events at a time, sealed or not, and each event in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404
from django.template.loader import render_to_string
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from responses_app.models import Response
from responses_app.store.log import reader
from responses_app.store.log.records import EventFrame
from responses_app.web.render.sanitize import visible
from responses_app.web.responses.numbers import parse_number

TEMPLATES = "admin/responses_app/response"
SHOWN = 100
FEW = 20
BRIEF = 120
LAST = 2**31 - 1
BEFORE = EventFrame(-1, "", b"")


@dataclass(frozen=True, slots=True)
class Line:
    """An event in the list: its time, how much later it is than the one before, and the beginning of what it says."""

    frame: EventFrame
    later: int

    def brief(self) -> str:
        """What is its own: of a delta its text, of another event all but its type and number."""
        event = json.loads(self.frame.data)
        said = event.get("delta", {key: value for key, value in event.items() if key not in {"type", "sequence_number"}})
        return visible(json.dumps(said, ensure_ascii=False)[:BRIEF])


def pretty(text: str | bytes) -> SafeString:
    """JSON to be read by people."""
    return format_html('<pre class="json">{}</pre>', visible(json.dumps(json.loads(text), indent=2, ensure_ascii=False)))


def urls(responses: ModelAdmin[Any]) -> list[URLPattern]:
    """The two addresses below that of a response."""
    wrap = responses.admin_site.admin_view

    def log(request: HttpRequest, pk: int) -> TemplateResponse:
        row = _found(responses, request, pk)
        return _answer(responses, request, "log", row, **_page(pk, _after(request)))

    def event(request: HttpRequest, pk: int, number: int) -> TemplateResponse:
        row = _found(responses, request, pk)
        frame = next(iter(_frames(pk, number - 1, 1)), BEFORE) if number <= LAST else BEFORE
        if frame.number != number:
            raise Http404
        return _answer(responses, request, "event", row, frame=frame, wire=pretty(frame.data))

    return [
        path("<int:pk>/log/", wrap(log), name="responses_app_response_log"),
        path("<int:pk>/log/<int:number>/", wrap(event), name="responses_app_response_event"),
    ]


def beginning(row: Response) -> SafeString:
    """The first events, and a link to all of them."""
    page = _page(row.pk, -1)
    return mark_safe(render_to_string(f"{TEMPLATES}/beginning.html", {**page, "lines": page["lines"][:FEW], "row": row}))  # noqa: S308 - a template's


def _after(request: HttpRequest) -> int:
    found = parse_number(request.GET.get("after", ""), LAST)
    return -1 if found is None else found


def _found(responses: ModelAdmin[Any], request: HttpRequest, pk: int) -> Response:
    row: Response = get_object_or_404(responses.get_queryset(request), pk=pk)
    if not responses.has_view_permission(request, row):
        raise PermissionDenied
    return row


def _answer(responses: ModelAdmin[Any], request: HttpRequest, name: str, row: Response, **context: Any) -> TemplateResponse:
    title = f"{name.capitalize()} of {row.uid}"
    common = {**responses.admin_site.each_context(request), "opts": responses.opts, "row": row, "title": title}
    return TemplateResponse(request, f"{TEMPLATES}/{name}.html", {**common, **context})


def _page(pk: int, after: int) -> dict[str, Any]:
    """The events behind `after`, and from where the pages around them begin."""
    # One more in front, whose time the first one is later than.
    frames = _frames(pk, max(after - 1, -1), SHOWN + 1)
    before = frames[0] if frames and after >= 0 else BEFORE
    shown = [frame for frame in frames if frame.number > after][:SHOWN]
    lines = [Line(frame, frame.ms - earlier.ms) for earlier, frame in pairwise([before, *shown])]
    end = reader.last_number(pk)
    return {
        "lines": lines,
        "end": end,
        "previous": max(after - SHOWN, -1) if after >= 0 else None,
        "next": shown[-1].number if shown and shown[-1].number < end else None,
        "last": max(end - SHOWN, -1),
    }


def _frames(pk: int, after: int, count: int) -> Sequence[EventFrame]:
    frames: list[EventFrame] = []
    for page in _read(pk, after):
        frames += page
        if len(frames) >= count:
            break
    return frames[:count]


def _read(pk: int, after: int) -> Iterator[list[EventFrame]]:
    while page := reader.read(pk, after):
        yield page
        after = page[-1].number
