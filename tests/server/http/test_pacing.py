"""Connections that send much get a share of the loop, and each of them its turn."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from responses_app.server.http.pacing import LARGE_READ, RESUMED, SHARE_S, Pacer
from responses_app.server.http.tcp_limits import LimitedConnection


class PacedReader:
    """A connection that always has something to read, which takes `cost` seconds."""

    def __init__(self, pacer: Pacer, cost: float) -> None:
        self.pacer, self.cost, self.turns = pacer, cost, 0
        self.reading = True

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def ready(self) -> None:
        if not self.reading:
            return
        if self.pacer.exhausted:
            self.pacer.wait(self)
        else:
            self.turns += 1
            self.pacer.spend(self, self.cost)


def ticked(pacer: Pacer) -> None:
    """Return a tick without its waiting time."""
    assert pacer._timer is not None
    pacer._timer.cancel()
    pacer._tick()


def test_all_of_many_readers_have_their_turns_and_together_no_more_than_the_share() -> None:
    async def act() -> None:
        pacer, ticks = Pacer(), 400
        readers = [PacedReader(pacer, SHARE_S / 2) for _ in range(50)]
        for _ in range(ticks):
            for reader in readers:
                reader.ready()
            ticked(pacer)
        turns = [reader.turns for reader in readers]
        assert sum(turns) * SHARE_S / 2 <= (ticks + 1) * SHARE_S
        assert sum(turns) >= ticks, "the share is used"
        assert max(turns) - min(turns) <= RESUMED, "nobody starves"

    asyncio.run(act())


def test_a_read_that_takes_long_is_paid_for_by_later_ticks() -> None:
    async def act() -> None:
        pacer = Pacer()
        reader = PacedReader(pacer, 10 * SHARE_S)
        for _ in range(101):
            reader.ready()
            ticked(pacer)
        assert reader.turns in (10, 11)

    asyncio.run(act())


def test_without_large_reads_nothing_ticks() -> None:
    async def act() -> None:
        pacer = Pacer()
        pacer.spend(PacedReader(pacer, 0), SHARE_S / 2)
        ticked(pacer)
        assert pacer._timer is None

    asyncio.run(act())


class Port:
    """Port of a connection, reduced to the used attributes."""

    def __init__(self, pacer: Pacer) -> None:
        self.pacer, self.open = pacer, set[Any]()


class Turned(LimitedConnection):
    """A connection over a pair of sockets; `watched` says whether the loop would be asked to read from it."""

    def __init__(self, sock: socket.socket, pacer: Pacer) -> None:
        self.connected, self.disconnecting = 1, False
        self._aborting, self._read_size, self._paced, self._paused = False, 0, False, False
        self.socket, self.server, self.protocol = sock, Port(pacer), self
        self.received, self.watched = 0, True

    def dataReceived(self, data: bytes) -> None:
        self.received += len(data)

    def startReading(self) -> None:
        self.watched = True

    def stopReading(self) -> None:
        self.watched = False


def test_a_connection_that_the_application_holds_is_not_resumed_by_its_turn() -> None:
    async def act() -> None:
        pacer = Pacer()
        here, there = socket.socketpair()
        with here, there:
            here.setblocking(False)
            one = Turned(here, pacer)
            there.sendall(b"x" * LARGE_READ)
            one.doRead()
            pacer.spend(one, SHARE_S)
            one.doRead()
            assert (one.received, one.watched) == (LARGE_READ, False), "it has sent much and waits for its turn"
            one.pauseProducing()
            ticked(pacer)
            assert not one.watched, "the application holds it"
            one.resumeProducing()
            assert one.watched
            pacer.spend(one, SHARE_S)
            one.doRead()
            one.resumeProducing()
            assert not one.watched, "the application may not take the turn of others"
            ticked(pacer)
            assert one.watched
            there.sendall(b"y")
            one.doRead()
            pacer.spend(one, SHARE_S)
            there.sendall(b"z")
            one.doRead()
            assert one.received == LARGE_READ + 2, "small reads wait for nobody"

    asyncio.run(act())
