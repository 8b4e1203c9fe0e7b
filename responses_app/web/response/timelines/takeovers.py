"""Notice of the take-overs of a response: when its process ended, and when another one continued it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from responses_app.models import Response
from responses_app.store.cluster import leases
from responses_app.store.log.event_index import EventHeader
from responses_app.web.render.item_titles import duration_text

WAITING = "The process that ran this response has ended. Another process that serves the model continues it within seconds."


def takeover_notices(row: Response, headers: Sequence[EventHeader]) -> Iterator[str]:
    """Yield a sentence for each take-over, and for a response that waits for one."""
    times = {header.number: header.ms for header in headers}
    for number in row.takeovers or ():
        if number in times and number + 1 in times:
            last, later = times[number] / 1000, times[number + 1] / 1000
            yield (
                f"The process that ran this response ended. Its last event came after {duration_text(last)}; "
                f"another process continued after {duration_text(later)}."
            )
    if row.ended_at is None and leases.is_abandoned(row.pk):
        yield WAITING
