"""The events of a log, one after the other, read page by page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from responses_app.store.log import reader
from responses_app.store.log.records import EventFrame


def frames(pk: int, after: int = -1) -> Iterator[EventFrame]:
    """All frames behind `after` that the log holds now."""
    while found := reader.read(pk, after):
        yield from found
        after = found[-1].number


def events(pk: int, to: int | None = None) -> Iterator[dict[str, Any]]:
    """The events as objects, up to and including the number `to`."""
    for frame in frames(pk):
        if to is not None and frame.number > to:
            return
        yield orjson.loads(frame.data)
