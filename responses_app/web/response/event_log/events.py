"""The events view of a response: numbered lines, runs of deltas drawn together; and each event with the response as it was then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log.event_index import EventHeader, events_by_number, outline
from responses_app.store.log.records import EventFrame
from responses_app.web.render.log_events import events
from responses_app.web.render.sanitize import pretty_json, truncate, visible
from responses_app.web.response.detail import get_response, number, render_page
from responses_app.web.response.event_log.event_groups import ALL, LABELS, EventGroup, group, kind
from responses_app.web.response.timeline import timeline

LINES = 200
# Characters that are shown of what an event, or a run of deltas, says; as in response.js.
BRIEF = 140
# Of a run of deltas so many are read, and so many more while its text is shorter than that. Most tokens have more than three characters.
STEPS = (12, 36, 96)
# Fields of a snapshot that its line shows.
TELLING = ("status", "error", "incomplete_details", "usage", "model")
JSON_SHOWN = 60_000


@dataclass(frozen=True, slots=True)
class EventLine:
    """A stretch of the log and the beginning of what it says."""

    stretch: EventGroup
    brief: str


@never_cache
@login_required
@require_safe
def index(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/events."""
    row = get_response(request, uid)
    after, opened = number(request, "after"), number(request, "open")
    marks = outline(row.pk, max(after - 1, -1) if after >= 0 else -1)
    before = marks[0].ms if marks and after >= 0 else 0
    marks = [mark for mark in marks if mark.number > after]
    chosen = [word for word in ALL if word in request.GET.getlist("kind")]
    shown = [mark for mark in marks if kind(mark.type) in chosen] if chosen else marks
    found = group(shown, opened=_run(shown, opened), before=before)
    lines = found[:LINES]
    return render_page(
        request,
        row,
        "response-events",
        "web/events.html",
        lines=_lines(row.pk, lines),
        kinds=LABELS.items(),
        chosen=chosen,
        kept="".join(f"kind={word}&" for word in chosen),
        after=after,
        opened=opened,
        previous=_before(row.pk, after) if after >= 0 else None,
        following=lines[-1].last.number if len(found) > LINES else None,
        timeline=timeline(marks) if after < 0 else None,
    )


@never_cache
@login_required
@require_safe
def show(request: HttpRequest, uid: str, place: int) -> HttpResponse:
    """GET /responses/ID/events/N: the event, and the response as those up to it have told it."""
    row = get_response(request, uid)
    frame = _frame(row.pk, place)
    what = request.GET.get("as")
    if what == "json":
        return HttpResponse(frame.data, content_type="application/json")
    folded = _folded(row.pk, place)
    if what == "folded":
        return HttpResponse(orjson.dumps(folded), content_type="application/json")
    text, left_out = truncate(pretty_json(orjson.loads(frame.data)), JSON_SHOWN)
    whole, rest = truncate(pretty_json(folded), JSON_SHOWN)
    return render_page(
        request,
        row,
        "response-events",
        "web/event.html",
        frame=frame,
        text=text,
        left_out=left_out,
        folded=whole,
        folded_rest=rest,
    )


def _frame(pk: int, place: int) -> EventFrame:
    frame = events_by_number(pk, [place]).get(place) if place < 2**31 else None
    if frame is None:
        raise Http404("This response has no event with this number.")
    return frame


def _folded(pk: int, place: int) -> Mapping[str, object] | None:
    try:
        return fold(events(pk, place), open_items=True)
    except ProtocolError:
        # Deltas were taken out of the log, so that what follows them cannot be folded.
        return None


def _run(marks: Sequence[EventHeader], opened: int) -> range:
    """The numbers of the run that begins there."""
    start = next((place for place, mark in enumerate(marks) if mark.number == opened), None)
    if start is None:
        return range(0)
    end = start
    while end < len(marks) and marks[end].type == marks[start].type:
        end += 1
    return range(opened, marks[end - 1].number + 1)


def _lines(pk: int, found: Sequence[EventGroup]) -> list[EventLine]:
    texts = ["" for _ in found]
    read = 0
    for step in STEPS:
        # Of a run whose text is long enough already, no more is read.
        wanted = [one.marks[read : read + step] if len(text) <= BRIEF else () for one, text in zip(found, texts, strict=True)]
        frames = events_by_number(pk, [mark.number for marks in wanted for mark in marks])
        for place, marks in enumerate(wanted):
            texts[place] += "".join(_text(frames[mark.number]) for mark in marks if mark.number in frames)
        read += step
    return [EventLine(one, _brief(text, more=len(one.marks) > read)) for one, text in zip(found, texts, strict=True)]


def _text(frame: EventFrame) -> str:
    """Return the text of a delta, or what tells an event from the others of its type."""
    # What is longer is not read for the sake of its beginning.
    if len(frame.data) > JSON_SHOWN:
        return f"{len(frame.data)} bytes"
    event = orjson.loads(frame.data)
    delta = event.get("delta")
    response = event.get("response")
    if isinstance(response, dict):
        # The rest of a snapshot is the same in all of them.
        return orjson.dumps({key: response[key] for key in TELLING if response.get(key) is not None}).decode()
    rest = {key: value for key, value in event.items() if key not in ("type", "sequence_number")}
    return delta if isinstance(delta, str) else orjson.dumps(rest).decode()


def _brief(text: str, *, more: bool) -> str:
    """Return the beginning of the text, with an ellipsis if something is left out."""
    return visible(text[:BRIEF]) + ("…" if more or len(text) > BRIEF else "")


def _before(pk: int, after: int) -> int:
    """Behind which number the page in front of this one begins. Pages are cut by lines, so it is made of the same lines."""
    found = [one for one in group(outline(pk)) if one.last.number <= after]
    return found[-LINES - 1].last.number if len(found) > LINES else -1
