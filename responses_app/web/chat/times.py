"""Server-side timing of responses for the chat page: time to first token, tokens per second, time of reasoning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from responses_app.models import Event, LogPage, Response
from responses_app.store.log.page_codec import unpack_headers
from responses_app.web.responses.rows import ResponseStats

ADDED, DONE = "response.output_item.added", "response.output_item.done"
# Every reasoning item has an event of one of these types before its `DONE` event, and no other item has.
REASONING = ("response.reasoning_text.done", "response.reasoning_summary_text.done")


class Times(TypedDict):
    """Seconds to the first token, tokens per second, and seconds of each finished reasoning item; null if unknown."""

    first_s: float | None
    rate: float | None
    thoughts: list[float]


def times_by_id(rows: Sequence[Response]) -> dict[str, Times]:
    """Return the times of the responses by id, with two queries."""
    marks = _marks([row.pk for row in rows])
    return {row.uid: _times(row, marks[row.pk]) for row in rows}


def _times(row: Response, marks: Iterable[tuple[str, int]]) -> Times:
    stats = ResponseStats(row)
    return {"first_s": stats.first_s, "rate": stats.rate, "thoughts": list(_reasoning_times(marks))}


def _reasoning_times(marks: Iterable[tuple[str, int]]) -> Iterable[float]:
    added_ms, is_reasoning = 0, False
    for type_, ms in marks:
        if type_ == ADDED:
            added_ms, is_reasoning = ms, False
        elif type_ in REASONING:
            is_reasoning = True
        elif type_ == DONE and is_reasoning:
            yield (ms - added_ms) / 1000


def _marks(keys: Sequence[int]) -> Mapping[int, list[tuple[str, int]]]:
    """Return types and times of the item events in log order, by primary key of the response."""
    marks: dict[int, list[tuple[str, int]]] = defaultdict(list)
    events = Event.objects.filter(response__in=keys, type__in=(ADDED, DONE, *REASONING)).order_by("response", "number")
    for pk, type_, ms in events.values_list("response_id", "type", "ms"):
        marks[pk].append((type_, ms))
    # The second query also finds a log that was archived after the first query.
    archived = LogPage.objects.filter(response__in=[pk for pk in keys if pk not in marks]).order_by("response", "first")
    for pk, data in archived.values_list("response_id", "data"):
        marks[pk] += [(type_, ms) for _, type_, ms in unpack_headers(bytes(data))]
    return marks
