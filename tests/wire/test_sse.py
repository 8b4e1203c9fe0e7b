"""Server-sent events: padding of deltas, and turns of other tasks."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import AsyncGenerator, Sequence

import pytest

from responses_app.protocol.encoding import EventFrame
from responses_app.wire.sse import BLOCK, FRAMES_PER_TURN, EventEncoder, EventFormat, padded, stream
from tests.support.waiting import run_ready_tasks

DELTA = "response.output_text.delta"


def frame(number: int, text: str) -> EventFrame:
    return EventFrame(number, DELTA, json.dumps({"sequence_number": number, "delta": text}).encode(), number)


@pytest.mark.parametrize("length", range(BLOCK + 1))
def test_padding_hides_the_length_of_a_delta(length: int) -> None:
    plain = frame(length * 977, "x" * length)
    event = json.loads(padded(plain))
    assert len(padded(plain)) % BLOCK == 0
    assert 1 <= len(event.pop("obfuscation")) <= BLOCK
    assert event == json.loads(plain.data)


def test_padding_depends_on_the_logged_event_alone() -> None:
    one = frame(7, "a")
    assert padded(one) == padded(one._replace(ms=99))


def test_padding_is_nearly_as_long_when_compressed() -> None:
    """Hexadecimal digits have half a byte of information each."""
    frames = [frame(number, "ab"[number % 2] * 5) for number in range(3000)]
    plain = zlib.compress(b"".join(one.data for one in frames), 9)
    whole = zlib.compress(b"".join(map(padded, frames)), 9)
    paddings = sum(len(json.loads(padded(one))["obfuscation"]) for one in frames)
    assert len(whole) - len(plain) > 0.5 * paddings


def test_other_events_have_no_padding() -> None:
    one = EventFrame(3, "response.completed", b'{"type":"response.completed"}')
    assert padded(one) is one.data


def test_other_tasks_have_turns_during_a_long_batch() -> None:
    async def batches() -> AsyncGenerator[Sequence[EventFrame], None]:
        yield [frame(number, "x") for number in range(2 * FRAMES_PER_TURN)]
        yield [EventFrame(2 * FRAMES_PER_TURN, "response.completed", b"{}", 0)]

    async def main() -> None:
        turns, turns_of_chunks = [0], list[int]()

        async def count() -> None:
            while True:
                turns[0] += 1
                await run_ready_tasks(1)

        counting = asyncio.create_task(count())
        async for chunk in stream(batches(), EventEncoder(EventFormat())):
            assert chunk.count(b"\n\n") <= FRAMES_PER_TURN
            turns_of_chunks.append(turns[0])
        counting.cancel()
        assert turns_of_chunks[:2] == [0, 1]

    asyncio.run(main())
