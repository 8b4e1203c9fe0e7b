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

from responses_app.dialects.base import Listener
from responses_app.grammar.events import Event
from responses_app.grammar.fold import minted
from responses_app.grammar.ids import Mint
from responses_app.grammar.opened import Seal
from responses_app.grammar.pieces import Break, Piece
from responses_app.grammar.writer import Writer
from responses_app.runs.heard import unpack
from responses_app.runs.ids import mint
from responses_app.store.records import Frame

Told = Sequence[tuple[Frame, bytes | None]]


class Differs(Exception):
    """What was said once more is not what the log holds."""


@dataclass(frozen=True, slots=True)
class Again:
    """A writer that has said all of the log, the tokens that its listener has heard, and whether these were all."""

    writer: Writer
    heard: list[int]
    closed: bool


def again(log: Told, listener: Listener, seal: Seal | None) -> Again:
    """Say it all once more; `listener` hears it. Raises Differs."""
    events: list[dict[str, Any]] = [orjson.loads(frame.data) for frame, _ in log]
    writer = Writer(events[0]["response"], _known_first(minted(events)), seal)
    heard: list[int] = []
    closed = False
    said = writer.open()
    if writer.waiting and len(log) > len(said):
        said += writer.start()
    for blob in (blob for _, blob in log if blob is not None):
        past = unpack(blob)
        closed = past.closed
        for chunk in past.chunks:
            heard += chunk.tokens
            said += _write(writer, listener.hear(chunk))
        if closed:
            said += _write(writer, listener.close()) + writer.write(Break())
    _compare(said, [frame for frame, _ in log])
    return Again(writer, heard, closed)


def _write(writer: Writer, pieces: Iterable[Piece]) -> list[Event]:
    return [event for piece in pieces for event in writer.write(piece)]


def _compare(said: Sequence[Event], frames: Sequence[Frame]) -> None:
    if len(said) != len(frames):
        raise Differs(f"{len(said)} events instead of {len(frames)}")
    for event, frame in zip(said, frames, strict=True):
        if orjson.dumps(event) != frame.data:
            raise Differs(f"event {frame.number} is {event['type']} instead of {frame.type}, or says something else")


def _known_first(ids: Sequence[str]) -> Mint:
    """The ids that the log has, in its order, and then new ones."""
    known: Iterator[str] = iter(ids)

    def next_id(prefix: str) -> str:
        return next(known, None) or mint(prefix)

    return next_id
