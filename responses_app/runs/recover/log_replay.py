"""A run made again from its log: the writer says once more what was said, the listener hears once more what was heard (F1).

What comes out must be the log, byte for byte; then the next event goes where the last one stopped, with the same ids, the same
open item and the next number. Where it is not, because the code or the model was changed meanwhile, nothing is made up: the
response fails, and what it had said stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from responses_app.dialects.base import OutputParser
from responses_app.protocol.deltas import Delta, EndItem
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.open_items import Encryptor
from responses_app.protocol.reducer import ids_in_order
from responses_app.protocol.writer import Writer
from responses_app.runs.ids import new_id
from responses_app.runs.recover.token_log import unpack
from responses_app.store.log.records import EventFrame

StoredLog = Sequence[tuple[EventFrame, bytes | None]]


class ReplayMismatch(Exception):
    """What was said once more is not what the log holds."""


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A writer that has said all of the log, the tokens that its listener has heard, and whether these were all."""

    writer: Writer
    heard: list[int]
    closed: bool


def replay(log: StoredLog, listener: OutputParser, seal: Encryptor | None) -> ReplayedRun:
    """Say it all once more; `listener` hears it. Raises Differs."""
    events: list[dict[str, Any]] = [orjson.loads(frame.data) for frame, _ in log]
    writer = Writer(events[0]["response"], _known_first(ids_in_order(events)), seal)
    heard: list[int] = []
    closed = False
    said = writer.open()
    if writer.is_queued and len(log) > len(said):
        said += writer.start()
    for blob in (blob for _, blob in log if blob is not None):
        past = unpack(blob)
        closed = past.closed
        for chunk in past.chunks:
            heard += chunk.tokens
            said += _write(writer, listener.feed(chunk))
        if closed:
            said += _write(writer, listener.finish()) + writer.write(EndItem())
    _compare(said, [frame for frame, _ in log])
    return ReplayedRun(writer, heard, closed)


def _write(writer: Writer, pieces: Iterable[Delta]) -> list[Event]:
    return [event for piece in pieces for event in writer.write(piece)]


def _compare(said: Sequence[Event], frames: Sequence[EventFrame]) -> None:
    if len(said) != len(frames):
        raise ReplayMismatch(f"{len(said)} events instead of {len(frames)}")
    for event, frame in zip(said, frames, strict=True):
        if orjson.dumps(event) != frame.data:
            raise ReplayMismatch(f"event {frame.number} is {event['type']} instead of {frame.type}, or says something else")


def _known_first(ids: Sequence[str]) -> IdFactory:
    """The ids that the log has, in its order, and then new ones."""
    known: Iterator[str] = iter(ids)

    def next_id(prefix: str) -> str:
        return next(known, None) or new_id(prefix)

    return next_id
