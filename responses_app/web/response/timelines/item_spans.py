"""Events and times of each output item in a log, with the run of its tool on the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import orjson

from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.log.event_index import EventHeader, events_by_number
from responses_app.web.response.timelines.event_kinds import DELTA, GENERATION_KINDS, event_kind

ADDED: Final = "response.output_item.added"
DONE: Final = "response.output_item.done"
SERVER_EVENTS: Final = frozenset(name for family in FAMILIES.values() if family.runs_on_server for name in family.event_types())
# The events that end a tool that the server ran.
TOOL_ENDS: Final = frozenset(name for name in SERVER_EVENTS if name.endswith((".completed", ".failed")))
# The last event before a tool runs: the end of the arguments, or the begin of a tool without arguments.
TOOL_STARTS: Final = frozenset(
    name for name in SERVER_EVENTS if name.endswith((".in_progress", "_arguments.done", "_code.done"))
)


@dataclass(frozen=True, slots=True)
class ItemSpan:
    """Output item with the numbers of its first and last event; of an item that is not done the last event of the log.

    `run` is the start and the end of the run of its tool in milliseconds, None for an item without a tool of the server.
    """

    item: Mapping[str, Any]
    first: int
    last: int
    run: tuple[int, int] | None = None

    @property
    def uid(self) -> str:
        """Return the id of the item."""
        return str(self.item.get("id", ""))


def item_spans(pk: int, headers: Sequence[EventHeader]) -> list[ItemSpan]:
    """Return the items of a log in the order of their first events."""
    times = {header.number: header.ms for header in headers}
    types = {ADDED, DONE} | TOOL_STARTS | TOOL_ENDS
    frames = events_by_number(pk, [header.number for header in headers if header.type in types])
    items, firsts, lasts = dict[str, Mapping[str, Any]](), dict[str, int](), dict[str, int]()
    starts, ends = dict[str, int](), dict[str, int]()
    for number, frame in sorted(frames.items()):
        event = orjson.loads(frame.data)
        if frame.type in (ADDED, DONE):
            uid = event["item"]["id"]
            items[uid] = event["item"]
            (firsts if frame.type == ADDED else lasts)[uid] = number
        else:
            (ends if frame.type in TOOL_ENDS else starts)[event["item_id"]] = times[number]
    end_number, end_ms = (headers[-1].number, headers[-1].ms) if headers else (0, 0)
    runs = {uid: (start, max(ends.get(uid, end_ms), start)) for uid, start in starts.items()}
    return [ItemSpan(items[uid], first, lasts.get(uid, end_number), runs.get(uid)) for uid, first in firsts.items()]


def tool_durations(spans: Sequence[ItemSpan]) -> dict[str, int]:
    """Return the milliseconds of each run of a tool, by item id."""
    return {span.uid: span.run[1] - span.run[0] for span in spans if span.run}


def round_starts(headers: Sequence[EventHeader]) -> list[int]:
    """Return the milliseconds at which each round begins: 0, and the last result before each later generation."""
    return [0, *_later_rounds(headers)]


def _later_rounds(headers: Sequence[EventHeader]) -> Iterator[int]:
    has_generated, result = False, None
    results = set(_last_results(headers))
    for header in headers:
        if header.number in results:
            result = header.ms
        elif header.type.endswith(DELTA) and event_kind(header.type) in GENERATION_KINDS:
            if has_generated and result is not None:
                yield result
            has_generated, result = True, None


def _last_results(headers: Sequence[EventHeader]) -> Iterator[int]:
    """Yield the numbers of the results that close the last open item. A result while another item is open is inside of a round."""
    count = 0
    for before, header in pairwise(headers):
        count += (header.type == ADDED) - (header.type == DONE)
        if not count and header.type == DONE and before.type in TOOL_ENDS:
            yield header.number
