"""Iterators over the events of a log, read page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from responses_app.protocol.encoding import EventFrame
from responses_app.store.log import reader


def frames(pk: int, after: int = -1) -> Iterator[EventFrame]:
    """Yield all stored frames after number `after`."""
    while page := reader.read(pk, after):
        yield from page
        after = page[-1].number


def events(pk: int, to: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the parsed events, up to and including number `to`."""
    for frame in frames(pk):
        if to is not None and frame.number > to:
            return
        yield orjson.loads(frame.data)
