"""Limits of a TCP connection: minimum sending and reading rates, and the kernel's send buffer."""

from __future__ import annotations

import socket
from typing import Any

from twisted.internet import main

from responses_app.server.http.pacing import LARGE_READ
from responses_app.server.http.write_coalescing import CoalescingConnection

# Seconds for all headers of a request. Between requests Twisted closes after 60 s of silence; this limit also covers
# clients that send single bytes.
HEAD_LIMIT = 30.0
IDLE_LIMIT = 75.0
# While all connections are in use, a client may owe a whole head for so many seconds.
WAITING_S = 1.0
# A body or a WebSocket message may take BODY_GRACE seconds, longer only at the minimum rate, and never longer than the
# last limit.
BODY_GRACE = 60.0
BODY_RATE = 1024
BODY_LONGEST = 600.0
# Seconds that the body of a request without a key may take, as the form of a page.
PAGE_LONGEST = 30.0
# Seconds that the upload of a file may take.
UPLOAD_LONGEST = 3600.0
# Seconds that a rejected client may continue to send, so that the client can read the answer.
LINGER_LONGEST = 30.0
# A client with pending data must read at least MIN_READ bytes (or everything) within the limit. Otherwise slow readers
# would hold responses in memory for hours.
STALL_LIMIT = 60.0
MIN_READ = 16 * 1024
# Send buffer of the kernel in bytes; the default grows to 4 MiB for each client that does not read.
SEND_BUFFER = 256 * 1024

# Seconds that the answer to a ping of a WebSocket may take.
PING_LIMIT = 60

IDLE, HEAD, BODY, ANSWER, LINGER = "idle", "head", "body", "answer", "linger"


def prepare(listening: socket.socket) -> None:
    """Set options of a listening socket, which accepted sockets inherit."""
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER // 2)  # The kernel doubles it.
    # A vanished peer is detected after 60 + 4 * 15 s.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4)


class LimitedConnection(CoalescingConnection):
    """TCP connection that counts read bytes and checks time limits. The port lists all open connections."""

    def __init__(self, sock: Any, protocol: Any, client: Any, server: Any, sessionno: int, reactor: Any) -> None:
        super().__init__(sock, protocol, client, server, sessionno, reactor)
        self.request_count = 0  # Number of requests whose first line has arrived.
        self._taken = 0
        self._stage_start: tuple[tuple[int, str], float] | None = None
        self._unread: tuple[int, float] | None = None
        self._read_size = 0
        self._paced = self._paused = False
        server.open.add(self)

    # Reading

    def doRead(self) -> Any:
        """Read, unless the pacer lets other connections read first (overrides Twisted)."""
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
        """Pause reading, also after the connection's turn (overrides Twisted)."""
        self._paused = True
        super().pauseProducing()

    def resumeProducing(self) -> None:
        """Resume reading, unless the connection waits in the pacer (overrides Twisted)."""
        self._paused = False
        if not self._paced:
            super().resumeProducing()

    def pause_reading(self) -> None:
        """Pause until the connection's turn."""
        self._paced = True
        self.stopReading()

    def resume_reading(self) -> None:
        """Resume at the connection's turn."""
        self._paced = False
        if not self._paused and self.connected and not self.disconnecting and not self._aborting:
            self.startReading()

    # Writing

    def writeSomeData(self, data: Any) -> Any:
        """Write to the socket and count the bytes (overrides Twisted)."""
        sent = super().writeSomeData(data)
        if sent is not main.CONNECTION_LOST:
            self._taken += sent
        return sent

    def connectionLost(self, reason: Any) -> None:
        """Remove the connection from the port (overrides Twisted)."""
        self.server.open.discard(self)
        super().connectionLost(reason)

    @property
    def idle_since(self) -> float | None:
        """Return the monotonic time since which no request is on the connection, None for a busy one and for a WebSocket."""
        channel = getattr(self.protocol, "_channel", None)
        return None if channel is None or channel.requests else float(channel.idle_since)

    @property
    def waiting_since(self) -> float | None:
        """Return the monotonic time since which the client owes a whole head, None for a busy connection and for a WebSocket."""
        channel = getattr(self.protocol, "_channel", None)
        if channel is None or not channel.requests:
            return self.idle_since
        is_head = len(channel.requests) == 1 and getattr(channel.requests[0], "stage", ANSWER) == HEAD
        if not is_head or self._stage_start is None or self._stage_start[0] != (self.request_count, HEAD):
            return None
        return self._stage_start[1]

    @property
    def has_unanswered_request(self) -> bool:
        """Return True if a request is received, or waits for the head of the answer."""
        channel = getattr(self.protocol, "_channel", None)
        return channel is not None and any(not request.startedWriting for request in channel.requests)

    def check_timeouts(self, now: float) -> None:
        """Close the connection of a slow client; a slow body is answered first."""
        if self._reads_too_slowly(now):
            self.abortConnection()
        elif self._sends_too_slowly(now):
            if self._stage_start is not None and self._stage_start[0][1] == BODY:
                self.protocol._channel.refuse_slow()
            else:
                self.abortConnection()

    def _reads_too_slowly(self, now: float) -> bool:
        if not self.pending:
            self._unread = None
        elif self._unread is None or self._taken - self._unread[0] >= MIN_READ:
            self._unread = self._taken, now
        return self._unread is not None and now - self._unread[1] > STALL_LIMIT

    def _sends_too_slowly(self, now: float) -> bool:
        channel = getattr(self.protocol, "_channel", None)
        if channel is None:
            return self._is_too_slow(now)
        request = channel.requests[-1] if channel.requests else None
        stage = IDLE if request is None else getattr(request, "stage", ANSWER)
        if self._stage_start is None or self._stage_start[0] != (self.request_count, stage):
            self._stage_start = (self.request_count, stage), now
        seconds = now - self._stage_start[1]
        if stage == BODY and request is not None:
            return _behind(request.received, seconds, _longest(request))
        limits = {IDLE: IDLE_LIMIT if self.request_count else HEAD_LIMIT, HEAD: HEAD_LIMIT, LINGER: LINGER_LONGEST}
        return seconds > limits.get(stage, seconds)

    def _is_too_slow(self, now: float) -> bool:
        """Return True for a WebSocket message that arrives too slowly. Silent connections are checked by pings."""
        since = getattr(self.protocol, "since", None)
        return since is not None and _behind(self.protocol.received, now - since, BODY_LONGEST)


def _longest(request: Any) -> float:
    """Return the seconds that the body of a request may take."""
    if request.is_upload:
        return UPLOAD_LONGEST
    return PAGE_LONGEST if request.is_keyless else BODY_LONGEST


def _behind(received: int, seconds: float, longest: float) -> bool:
    """Return True if `received` bytes in `seconds` are below the minimum rate of a body, or `seconds` above `longest`."""
    return seconds > longest or (seconds > BODY_GRACE and received < (seconds - BODY_GRACE) * BODY_RATE)
