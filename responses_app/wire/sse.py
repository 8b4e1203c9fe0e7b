"""Frames as server-sent events: one event, one write; comments as heartbeat; `[DONE]` at the end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import blake2b

from django.conf import settings

from responses_app.store.log.reader import TERMINAL
from responses_app.store.log.records import EventFrame
from responses_app.wire.profiles import frame_to_profile


class StreamInterrupted(Exception):
    """The response goes on, but not in this process."""


HEARTBEAT = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
# The padding hides token lengths from whoever watches the wire. It is never stored; made of the event itself, it is the same for every
# listener, so that a replay has the bytes of the stream.
BLOCK = 16
_KEY = b',"obfuscation":"'


def encode(frame: EventFrame, obfuscate: bool = False) -> bytes:
    """One event: the bytes of the log between the event line and a blank line. No `id:`, no `retry:` (responses-api.md §2.1)."""
    return b"event: " + frame.type.encode() + b"\ndata: " + (padded(frame) if obfuscate else frame.data) + b"\n\n"


def padded(frame: EventFrame) -> bytes:
    """Return its JSON; that of a delta is padded to a multiple of BLOCK bytes, by 1 to BLOCK characters."""
    data = frame.data
    if not frame.type.endswith(".delta"):
        return data
    pad = blake2b(data, digest_size=BLOCK // 2).hexdigest()[(len(data) + 1 + len(_KEY)) % BLOCK :]
    return data[:-1] + _KEY + pad.encode() + b'"}'


@dataclass(frozen=True, slots=True)
class EventFormat:
    """How one listener wants its events: padded, and under which names."""

    obfuscate: bool = False
    named_open: bool = False


async def stream(frames: AsyncGenerator[EventFrame | None, None], form: EventFormat) -> AsyncIterator[bytes]:
    """The body of a stream: every frame, a heartbeat for every None, then the end mark.

    Raises Cut where frames stop before the response has ended: the connection breaks, and the client comes back with the
    last number that it has seen.
    """
    last = ""
    async with aclosing(frames):
        async for frame in frames:
            if frame is None:
                yield HEARTBEAT
            else:
                last = frame.type
                yield encode(frame_to_profile(frame) if form.named_open else frame, form.obfuscate)
    if last and last not in TERMINAL:
        raise StreamInterrupted
    if settings.RESPONSES_SSE_DONE:
        yield DONE
