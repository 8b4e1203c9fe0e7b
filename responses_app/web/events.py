"""The events view of a response: numbered lines, runs of deltas drawn together; and each event with the response as it was then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.grammar.errors import GrammarError
from responses_app.grammar.fold import fold
from responses_app.store.outline import Mark, outline, told
from responses_app.store.records import Frame
from responses_app.web.found import find, number, page
from responses_app.web.plain import cut, plain, pretty
from responses_app.web.reading import events
from responses_app.web.stretches import ALL, Stretch, kind, stretches
from responses_app.web.timeline import timeline

LINES = 200
# Of a run of deltas so many tell how it begins.
BEGINNING = 12
BRIEF = 140
JSON_SHOWN = 60_000


@dataclass(frozen=True, slots=True)
class Line:
    """A stretch of the log and the beginning of what it says."""

    stretch: Stretch
    brief: str


@never_cache
@login_required
@require_safe
def index(request: HttpRequest, uid: str) -> HttpResponse:
    """GET /responses/ID/events."""
    row = find(request, uid)
    after, opened = number(request, "after"), number(request, "open")
    marks = outline(row.pk, max(after - 1, -1) if after >= 0 else -1)
    before = marks[0].ms if marks and after >= 0 else 0
    marks = [mark for mark in marks if mark.number > after]
    chosen = [word for word in ALL if word in request.GET.getlist("kind")]
    shown = [mark for mark in marks if kind(mark.type) in chosen] if chosen else marks
    found = stretches(shown, opened=_run(shown, opened), before=before)
    lines = found[:LINES]
    return page(
        request,
        row,
        "response-events",
        "web/events.html",
        lines=_lines(row.pk, lines),
        kinds=ALL,
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
    row = find(request, uid)
    frame = _frame(row.pk, place)
    what = request.GET.get("as")
    if what == "json":
        return HttpResponse(frame.data, content_type="application/json")
    folded = _folded(row.pk, place)
    if what == "folded":
        return HttpResponse(orjson.dumps(folded), content_type="application/json")
    text, left_out = cut(pretty(orjson.loads(frame.data)), JSON_SHOWN)
    whole, rest = cut(pretty(folded), JSON_SHOWN)
    return page(
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


def _frame(pk: int, place: int) -> Frame:
    frame = told(pk, [place]).get(place) if place < 2**31 else None
    if frame is None:
        raise Http404("The log has no event of this number.")
    return frame


def _folded(pk: int, place: int) -> Mapping[str, object] | None:
    try:
        return fold(events(pk, place), open_items=True)
    except GrammarError:
        # Deltas were taken out of the log, so that what follows them cannot be folded.
        return None


def _run(marks: Sequence[Mark], opened: int) -> range:
    """The numbers of the run that begins there."""
    start = next((place for place, mark in enumerate(marks) if mark.number == opened), None)
    if start is None:
        return range(0)
    end = start
    while end < len(marks) and marks[end].type == marks[start].type:
        end += 1
    return range(opened, marks[end - 1].number + 1)


def _lines(pk: int, found: Sequence[Stretch]) -> list[Line]:
    frames = told(pk, [mark.number for one in found for mark in one.marks[:BEGINNING]])
    return [
        Line(one, _brief([frames[mark.number] for mark in one.marks[:BEGINNING] if mark.number in frames])) for one in found
    ]


def _brief(frames: Sequence[Frame]) -> str:
    """Of deltas their text, of another event all but its type and number."""
    said = []
    for frame in frames:
        # What is longer is not read for the sake of its beginning.
        if len(frame.data) > JSON_SHOWN:
            return f"{len(frame.data)} bytes"
        event = orjson.loads(frame.data)
        rest = {key: value for key, value in event.items() if key not in ("type", "sequence_number")}
        delta = event.get("delta")
        said.append(delta if isinstance(delta, str) else orjson.dumps(rest).decode())
    text = "".join(said)
    return plain(text[:BRIEF]) + ("…" if len(text) > BRIEF else "")


def _before(pk: int, after: int) -> int:
    """Behind which number the page in front of this one begins. Pages are cut by lines, so it is made of the same lines."""
    found = [one for one in stretches(outline(pk)) if one.last.number <= after]
    return found[-LINES - 1].last.number if len(found) > LINES else -1
