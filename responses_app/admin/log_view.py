"""Admin views of the event log of a response: pages of events, and a single event in full."""

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
PAGE_SIZE = 100
PREVIEW_SIZE = 20
MAX_SUMMARY_CHARS = 120
# The largest value of an integer column in Postgres.
MAX_NUMBER = 2**31 - 1
NO_EVENT = EventFrame(-1, "", b"")


@dataclass(frozen=True, slots=True)
class Line:
    """Row of the event list. `later` is the time since the previous event in milliseconds."""

    frame: EventFrame
    later: int

    def brief(self) -> str:
        """Summarize the event: the text of a delta, or else the JSON without type and number."""
        event = json.loads(self.frame.data)
        content = event.get("delta", {key: value for key, value in event.items() if key not in {"type", "sequence_number"}})
        return visible(json.dumps(content, ensure_ascii=False)[:MAX_SUMMARY_CHARS])


def pretty(text: str | bytes) -> SafeString:
    """Format JSON with indentation, as an HTML block."""
    return format_html('<pre class="json">{}</pre>', visible(json.dumps(json.loads(text), indent=2, ensure_ascii=False)))


def urls(responses: ModelAdmin[Any]) -> list[URLPattern]:
    """Return the URL patterns of the log and of a single event of a response."""
    wrap = responses.admin_site.admin_view

    def log(request: HttpRequest, pk: int) -> TemplateResponse:
        row = _get_response(responses, request, pk)
        return _render(responses, request, "log", row, **_page(pk, _after(request)))

    def event(request: HttpRequest, pk: int, number: int) -> TemplateResponse:
        row = _get_response(responses, request, pk)
        frame = next(iter(_frames(pk, number - 1, 1)), NO_EVENT) if number <= MAX_NUMBER else NO_EVENT
        if frame.number != number:
            raise Http404
        return _render(responses, request, "event", row, frame=frame, wire=pretty(frame.data))

    return [
        path("<int:pk>/log/", wrap(log), name="responses_app_response_log"),
        path("<int:pk>/log/<int:number>/", wrap(event), name="responses_app_response_event"),
    ]


def preview(row: Response) -> SafeString:
    """Render the first events, with a link to the whole log."""
    page = _page(row.pk, -1)
    context = {**page, "lines": page["lines"][:PREVIEW_SIZE], "row": row}
    return mark_safe(render_to_string(f"{TEMPLATES}/preview.html", context))  # noqa: S308 - rendered by a template


def _after(request: HttpRequest) -> int:
    number = parse_number(request.GET.get("after", ""), MAX_NUMBER)
    return -1 if number is None else number


def _get_response(responses: ModelAdmin[Any], request: HttpRequest, pk: int) -> Response:
    row: Response = get_object_or_404(responses.get_queryset(request), pk=pk)
    if not responses.has_view_permission(request, row):
        raise PermissionDenied
    return row


def _render(responses: ModelAdmin[Any], request: HttpRequest, name: str, row: Response, **context: Any) -> TemplateResponse:
    title = f"{name.capitalize()} of {row.uid}"
    common = {**responses.admin_site.each_context(request), "opts": responses.opts, "row": row, "title": title}
    return TemplateResponse(request, f"{TEMPLATES}/{name}.html", {**common, **context})


def _page(pk: int, after: int) -> dict[str, Any]:
    """Build the template context of the events after number `after`, with the links to the other pages."""
    # Includes the event before the page, for the time difference of the first row.
    frames = _frames(pk, max(after - 1, -1), PAGE_SIZE + 1)
    before = frames[0] if frames and after >= 0 else NO_EVENT
    on_page = [frame for frame in frames if frame.number > after][:PAGE_SIZE]
    lines = [Line(frame, frame.ms - earlier.ms) for earlier, frame in pairwise([before, *on_page])]
    end = reader.last_number(pk)
    return {
        "lines": lines,
        "end": end,
        "previous": max(after - PAGE_SIZE, -1) if after >= 0 else None,
        "next": on_page[-1].number if on_page and on_page[-1].number < end else None,
        "last": max(end - PAGE_SIZE, -1),
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
