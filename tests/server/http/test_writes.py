"""Writes of a connection: in order, and few, for every amount that the kernel accepts."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from responses_app.server.http.write_coalescing import HELD, CoalescingConnection
from tests.support.waiting import run_ready_tasks

# What happens to a connection: bytes are written, alone or in parts, or a turn of the loop ends.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("put"), st.integers(HELD // 2, HELD + 1).map(bytes)),
        st.tuples(st.just("sequence"), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("turn"), st.just(b"")),
    ),
    max_size=12,
)


class Wire(CoalescingConnection):
    """A connection whose kernel takes `room` bytes in all; the rest stays in Twisted's buffer."""

    def __init__(self, room: int) -> None:
        self.connected, self.disconnecting, self.offset, self._tempDataLen = 1, False, 0, 0
        self.dataBuffer = b""
        self._tempDataBuffer: list[bytes] = []
        self._held, self._held_size = [], 0
        self.room, self.sent, self.calls = room, b"", 0

    def writeSomeData(self, data: Any) -> int:
        self.calls += 1
        some = bytes(data[: self.room])
        self.room -= len(some)
        self.sent += some
        return len(some)

    def startWriting(self) -> None:
        """Nobody watches this socket."""

    @property
    def whole(self) -> bytes:
        """What was sent, and what waits, in its order."""
        buffered: bytes = self.dataBuffer[self.offset :] + b"".join(self._tempDataBuffer)
        return self.sent + buffered + b"".join(self._held)


@given(STEPS, st.sampled_from([0, 7, 100, HELD, 10**9]))
def test_everything_leaves_in_order_and_nothing_twice(steps: list[tuple[str, bytes]], room: int) -> None:
    async def act() -> None:
        wire, given_ = Wire(room), b""
        for what, data in steps:
            if what == "put":
                wire.write(data)
            elif what == "sequence":
                wire.writeSequence([data[:1], data[1:]])
            else:
                await run_ready_tasks()
            given_ += data
            assert wire.whole == given_
            assert wire.pending == len(given_) - len(wire.sent)
        await run_ready_tasks()
        assert not wire._held
        assert wire.whole == given_

    asyncio.run(act())


def test_data_of_one_turn_is_one_write() -> None:
    async def act() -> None:
        wire = Wire(10**9)
        for _ in range(3):
            for part in (b"one", b"two", b"three"):
                wire.write(part)
            await run_ready_tasks()
        assert (wire.calls, wire.sent) == (3, b"onetwothree" * 3)

    asyncio.run(act())


def test_no_more_is_held_than_the_limit() -> None:
    async def act() -> None:
        wire = Wire(10**9)
        for _ in range(100):
            wire.write(bytes(HELD // 10))
            assert wire._held_size <= HELD
        assert wire.sent

    asyncio.run(act())
