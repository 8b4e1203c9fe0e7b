"""Server-sent events: a write for all events that are there, comments as heartbeat, `[DONE]` at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import shake_256
from typing import Protocol

from django.conf import settings

from responses_app.protocol.encoding import EventFrame
from responses_app.runs.execute.broadcast import FrameBatches
from responses_app.store.log.reader import TERMINAL
from responses_app.wire.profiles import frame_to_profile


class StreamInterrupted(Exception):
    """Frames ended before the response did: the run continues in another process."""


# Frames that are encoded before other tasks of the event loop have a turn. A page of a long log has thousands.
FRAMES_PER_TURN = 500
HEARTBEAT = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
# Padding hides token lengths from observers of the network. Padding is derived from the number and the length of the event and not
# stored, so that every subscriber and every replay gets the same bytes. The characters come in turn from a table that looks random
# and is longer than the window of deflate, so that a proxy that compresses does not make the padding disappear.
BLOCK = 16
_KEY = b',"obfuscation":"'
_PADDING = shake_256(b"obfuscation").hexdigest(1 << 15).encode()


def encode(frame: EventFrame, obfuscate: bool = False) -> bytes:
    """Encode one event: the event line, the bytes of the log, a blank line. `id:` and `retry:` are not sent."""
    return b"event: " + frame.type.encode() + b"\ndata: " + (padded(frame) if obfuscate else frame.data) + b"\n\n"


def padded(frame: EventFrame) -> bytes:
    """Return the JSON of a frame; a delta is padded by 1 to BLOCK characters to a multiple of BLOCK bytes."""
    return pad(frame.data, frame.number) if frame.type.endswith(".delta") else frame.data


def pad(data: bytes, number: int) -> bytes:
    """Return the JSON object `data` with padding for the event `number`, a multiple of BLOCK bytes long."""
    start = number * BLOCK % len(_PADDING)
    return data[:-1] + _KEY + _PADDING[start + (len(data) + 1 + len(_KEY)) % BLOCK : start + BLOCK] + b'"}'


@dataclass(frozen=True, slots=True)
class EventFormat:
    """Options of an event stream: padding, and the profile's names."""

    obfuscate: bool = False
    open_responses: bool = False


class StreamEncoder(Protocol):
    """Encoder of the log for a stream of an API format.

    `last` is the type of the last event, empty before the first one. `heartbeat` is sent in a pause, `end` behind the last event.
    """

    last: str
    heartbeat: bytes
    end: bytes

    def encode(self, frames: Sequence[EventFrame]) -> list[bytes]:
        """Encode the events of a batch, which is not empty. A batch may encode to nothing."""
        ...


class EventEncoder:
    """Encoder of a stream of the events themselves."""

    heartbeat = HEARTBEAT

    def __init__(self, form: EventFormat) -> None:
        self._form = form
        self.last = ""
        self.end = DONE if settings.RESPONSES_SSE_DONE else b""

    def encode(self, frames: Sequence[EventFrame]) -> list[bytes]:
        """Encode the events of a batch."""
        self.last = frames[-1].type
        if self._form.open_responses:
            frames = [frame_to_profile(frame) for frame in frames]
        obfuscate = self._form.obfuscate
        return [encode(frame, obfuscate) for frame in frames]


async def stream(batches: FrameBatches, encoder: StreamEncoder) -> AsyncIterator[bytes]:
    """Iterate over the chunks of a stream: a chunk for up to FRAMES_PER_TURN frames, a heartbeat for no frame, then the end mark.

    Raises StreamInterrupted if the frames end before the response: the connection breaks, and the client resumes with
    the last number received.
    """
    async with aclosing(batches):
        async for batch in batches:
            if not batch:
                yield encoder.heartbeat
            for start in range(0, len(batch), FRAMES_PER_TURN):
                if start:
                    await asyncio.sleep(0)
                if data := b"".join(encoder.encode(batch[start : start + FRAMES_PER_TURN])):
                    yield data
    if encoder.last and encoder.last not in TERMINAL:
        raise StreamInterrupted
    if encoder.end:
        yield encoder.end
