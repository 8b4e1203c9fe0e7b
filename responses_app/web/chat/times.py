"""Time to first token, tokens per second and time of reasoning, by the clock of the server: what stands under an answer of the chat."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict

from responses_app.models import Event, LogPage, Response
from responses_app.store.log.page_codec import outline
from responses_app.web.responses.rows import ResponseStats

ADDED, DONE = "response.output_item.added", "response.output_item.done"
# Only an item of reasoning has events of these types, and one of them before it is done.
REASONING = ("response.reasoning_text.done", "response.reasoning_summary_text.done")


class Times(TypedDict):
    """Seconds to the first token, tokens a second, and seconds of each item of reasoning that is done; null where nobody knows."""

    first_s: float | None
    rate: float | None
    thoughts: list[float]


def told(rows: Sequence[Response]) -> dict[str, Times]:
    """The times of these responses by id. Two queries for all of them."""
    marks = _marks([row.pk for row in rows])
    return {row.uid: _times(row, marks[row.pk]) for row in rows}


def _times(row: Response, marks: Iterable[tuple[str, int]]) -> Times:
    figures = ResponseStats(row)
    return {"first_s": figures.first_s, "rate": figures.rate, "thoughts": list(_thoughts(marks))}


def _thoughts(marks: Iterable[tuple[str, int]]) -> Iterable[float]:
    began, is_reasoning = 0, False
    for type_, ms in marks:
        if type_ == ADDED:
            began, is_reasoning = ms, False
        elif type_ in REASONING:
            is_reasoning = True
        elif type_ == DONE and is_reasoning:
            yield (ms - began) / 1000


def _marks(keys: Sequence[int]) -> Mapping[int, list[tuple[str, int]]]:
    """Types and times of the events that matter here, in the order of the log, by primary key of the response."""
    found: dict[int, list[tuple[str, int]]] = defaultdict(list)
    events = Event.objects.filter(response__in=keys, type__in=(ADDED, DONE, *REASONING)).order_by("response", "number")
    for pk, type_, ms in events.values_list("response_id", "type", "ms"):
        found[pk].append((type_, ms))
    # A log that was sealed between the two questions is found by the second.
    sealed = LogPage.objects.filter(response__in=[pk for pk in keys if pk not in found]).order_by("response", "first")
    for pk, data in sealed.values_list("response_id", "data"):
        found[pk] += [(type_, ms) for _, type_, ms in outline(bytes(data))]
    return found
