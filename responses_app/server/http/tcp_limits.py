"""What one client may cost: how slowly it may send, how slowly it may read, and how much the kernel keeps for it."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

from twisted.internet import main, tcp

from responses_app.server.http.pacing import LARGE_READ

# Seconds for the first request to come with all its headers, and for those of each later one; between two requests Twisted
# hangs up after 60 s, and this is for a client that sends a byte now and then instead.
HEAD_LIMIT = 30.0
IDLE_LIMIT = 75.0
# A body, or a message of a WebSocket, may take this many seconds, beyond that as long as it comes at this rate, and never longer
# than the last of these.
BODY_GRACE = 60.0
BODY_RATE = 1024
BODY_LONGEST = 600.0
# A client that was refused may send on for so many seconds, and see the answer meanwhile.
LINGER_LONGEST = 30.0
# A client that has something to read must take at least LEAST bytes (or all there is) within the limit. One that takes a
# byte per second keeps a response from being forgotten for hours, one that takes nothing for ever.
STALL_LIMIT = 60.0
LEAST = 16 * 1024
# The kernel would buffer up to 4 MiB for each client that does not read, where nobody counts it.
SEND_BUFFER = 256 * 1024
# What is put in one turn of the loop is written together, but no more than this waits for its end.
HELD = 16 * 1024

# How often the peer of a WebSocket is asked whether it is there, and how long it may take to answer.
PING_EVERY = 20
PING_LIMIT = 60

IDLE, HEAD, BODY, ANSWER, LINGER = "idle", "head", "body", "answer", "linger"


def prepare(listening: socket.socket) -> None:
    """Options of a listening socket which those that are accepted inherit."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER // 2)  # The kernel doubles it.
    # A peer that vanished without a word is found out after 60 + 4 * 15 s, however little is said to it.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


class LimitedConnection(tcp.Server):  # type: ignore[misc]
    """Twisted's, which counts what the client takes, and can be looked at now and then. The port knows all that are `open`."""

    def __init__(self, sock: Any, protocol: Any, client: Any, server: Any, sessionno: int, reactor: Any) -> None:
        super().__init__(sock, protocol, client, server, sessionno, reactor)
        self.begun = 0  # Requests, each by the first line that it sends.
        self._taken = 0
        self._held: list[bytes] = []
        self._held_size = 0
        self._asked: tuple[tuple[int, str], float] | None = None
        self._unread: tuple[int, float] | None = None
        self._read_size = 0
        self._paced = self._paused = False
        server.open.add(self)

    # Reading

    def doRead(self) -> Any:
        """Twisted's, unless this connection sends much and others have their turn."""
        if self._read_size < LARGE_READ:
            return super().doRead()
        pacer = self.server.pacer
        if pacer.exhausted:
            pacer.wait(self)
            return None
        began = pacer.clock()
        why = super().doRead()
        pacer.spend(self, pacer.clock() - began)
        return why

    def _dataReceived(self, data: bytes) -> Any:
        self._read_size = len(data)
        return super()._dataReceived(data)

    def pauseProducing(self) -> None:
        """Twisted's, remembered for when the turn of this connection comes."""
        self._paused = True
        super().pauseProducing()

    def resumeProducing(self) -> None:
        """Twisted's, when the turn of this connection has come."""
        self._paused = False
        if not self._paced:
            super().resumeProducing()

    def pause_reading(self) -> None:
        """Wait for a turn."""
        self._paced = True
        self.stopReading()

    def resume_reading(self) -> None:
        """Read again: it is the turn of this connection."""
        self._paced = False
        if not self._paused and self.connected and not self.disconnecting and not self._aborting:
            self.startReading()

    # Writing

    def writeSomeData(self, data: Any) -> Any:
        """Twisted's, counted."""
        sent = super().writeSomeData(data)
        if sent is not main.CONNECTION_LOST:
            self._taken += sent
        return sent

    def write_buffered(self, data: bytes) -> None:
        """Write at the end of this turn of the loop, with all that is put until then: the frames of one flush are one system call.

        Twisted would make one of each, and two more to have the loop watch the socket and stop again.
        """
        if not self._held:
            asyncio.get_running_loop().call_soon(self._flush)
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size > HELD:
            self._flush()

    def write(self, data: bytes) -> None:
        """Twisted's, behind what was put before."""
        self._flush()
        super().write(data)

    def loseConnection(self, *reason: Any) -> None:
        """Twisted's, behind what was put before."""
        self._flush()
        super().loseConnection(*reason)

    def _flush(self) -> None:
        """Write what was put, at once if nothing waits."""
        if not self._held:
            return
        data, waits = b"".join(self._held), self.pending > self._held_size
        self._held, self._held_size = [], 0
        sent: Any = 0
        if self.connected and not self.disconnecting and not waits:
            sent = self.writeSomeData(data)
        if sent is main.CONNECTION_LOST:
            sent = 0  # Which Twisted will find out by itself.
        if sent < len(data):
            super().write(data[sent:])

    def connectionLost(self, reason: Any) -> None:
        """Twisted's, and the port forgets us."""
        self.server.open.discard(self)
        super().connectionLost(reason)

    @property
    def pending(self) -> int:
        """Bytes that the client has not taken yet."""
        return len(self.dataBuffer) - self.offset + self._tempDataLen + self._held_size  # type: ignore[no-any-return]

    def check_timeouts(self, now: float) -> None:
        """Hang up if the client is too slow; one that is slow with its body is told."""
        if self._reads_too_slowly(now):
            self.abortConnection()
        elif self._sends_too_slowly(now):
            if self._asked is not None and self._asked[0][1] == BODY:
                self.protocol._channel.refuse_slow()
            else:
                self.abortConnection()

    def _reads_too_slowly(self, now: float) -> bool:
        if not self.pending:
            self._unread = None
        elif self._unread is None or self._taken - self._unread[0] >= LEAST:
            self._unread = self._taken, now
        return self._unread is not None and now - self._unread[1] > STALL_LIMIT

    def _sends_too_slowly(self, now: float) -> bool:
        channel = getattr(self.protocol, "_channel", None)
        if channel is None:
            return self._is_too_slow(now)
        request = channel.requests[-1] if channel.requests else None
        stage = IDLE if request is None else getattr(request, "stage", ANSWER)
        if self._asked is None or self._asked[0] != (self.begun, stage):
            self._asked = (self.begun, stage), now
        seconds = now - self._asked[1]
        if stage == BODY and request is not None:
            return _behind(request.received, seconds)
        limits = {IDLE: IDLE_LIMIT if self.begun else HEAD_LIMIT, HEAD: HEAD_LIMIT, LINGER: LINGER_LONGEST}
        return seconds > limits.get(stage, seconds)

    def _is_too_slow(self, now: float) -> bool:
        """Whether a WebSocket has begun a message that does not get on. It may be silent; pings find out whether it is there."""
        since = getattr(self.protocol, "since", None)
        return since is not None and _behind(self.protocol.received, now - since)


def _behind(received: int, seconds: float) -> bool:
    """Whether so much in so many seconds is less than what a body must come with."""
    return seconds > BODY_LONGEST or (seconds > BODY_GRACE and received < (seconds - BODY_GRACE) * BODY_RATE)
