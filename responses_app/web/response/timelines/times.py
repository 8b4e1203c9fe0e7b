"""Server-side timing of responses: time to first token, tokens per second, time of reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypedDict

from responses_app.models import Response
from responses_app.web.responses.rows import ResponseStats

ADDED, DONE = "response.output_item.added", "response.output_item.done"
# Every reasoning item has an event of one of these types before its `DONE` event, and no other item has.
REASONING = ("response.reasoning_text.done", "response.reasoning_summary_text.done")


class Times(TypedDict):
    """Seconds to the first token and tokens per second; null if unknown."""

    first_s: float | None
    rate: float | None


def times_of(row: Response) -> Times:
    """Return the times of a response."""
    stats = ResponseStats(row)
    return {"first_s": stats.first_s, "rate": stats.rate}


def reasoning_times(marks: Iterable[tuple[str, int]]) -> Iterator[float]:
    """Yield the seconds of each finished reasoning item, from types and milliseconds of events in log order."""
    added_ms, is_reasoning = 0, False
    for type_, ms in marks:
        if type_ == ADDED:
            added_ms, is_reasoning = ms, False
        elif type_ in REASONING:
            is_reasoning = True
        elif type_ == DONE and is_reasoning:
            yield (ms - added_ms) / 1000
