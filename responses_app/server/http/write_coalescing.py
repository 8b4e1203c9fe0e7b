"""Write coalescing: the data of a turn of the event loop leaves a TCP connection with one system call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from twisted.internet import main, tcp

# Bytes that are held until the end of a turn of the loop.
HELD: Final = 16 * 1024


class CoalescingConnection(tcp.Server):  # type: ignore[misc]
    """TCP connection that holds data until the end of a turn of the loop, and then calls `send` directly.

    Twisted alone needs a turn of the loop and two more system calls for each write, to begin and to end watching the socket.
    It is left with the data that the kernel does not take.
    """

    def __init__(self, sock: Any, protocol: Any, client: Any, server: Any, sessionno: int, reactor: Any) -> None:
        super().__init__(sock, protocol, client, server, sessionno, reactor)
        # Kept, because each call of `get_running_loop` asks the kernel for the process id.
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._held_size = 0
        self._readable: asyncio.Event | None = None

    def write(self, data: bytes) -> None:
        """Write at the end of this turn of the loop (overrides Twisted)."""
        self.writeSequence((data,))

    def writeSequence(self, iovec: Sequence[bytes]) -> None:
        """Write the parts at the end of this turn of the loop, at once beyond `HELD` bytes (overrides Twisted)."""
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held += iovec
        self._held_size += sum(map(len, iovec))
        if self._held_size > HELD:
            self._flush()

    def loseConnection(self, *reason: Any) -> None:
        """Flush held bytes first (overrides Twisted)."""
        self._flush()
        super().loseConnection(*reason)

    def loseWriteConnection(self) -> None:
        """Flush held bytes first (overrides Twisted)."""
        self._flush()
        super().loseWriteConnection()

    def _flush(self) -> None:
        """Write the held bytes, directly to the socket if no data is pending."""
        if not self._held_size:
            self._held.clear()
            return
        waits = self.pending > self._held_size
        data, self._held, self._held_size = b"".join(self._held), [], 0
        sent: Any = 0
        if self.connected and not self.disconnecting and not waits and len(data) <= self.SEND_LIMIT:
            sent = self.writeSomeData(data)
        if sent is main.CONNECTION_LOST:
            sent = 0  # Twisted detects the error by itself.
        if sent < len(data):
            super().write(data[sent:])

    def writeSomeData(self, data: Any) -> Any:
        """Send directly (overrides Twisted, whose function is called for long data and after an error)."""
        if len(data) > self.SEND_LIMIT:
            return super().writeSomeData(data)
        try:
            return self.socket.send(data)
        except OSError:
            return super().writeSomeData(data)

    @property
    def pending(self) -> int:
        """Return the number of bytes that the client has not read."""
        return len(self.dataBuffer) - self.offset + self._tempDataLen + self._held_size  # type: ignore[no-any-return]

    # Back-pressure

    @property
    def keeps_up(self) -> bool:
        """Return True if the connection is open and at most 64 KiB are unsent."""
        return bool(self.connected and not self.producerPaused and not self.disconnecting)

    async def wait_until_read(self) -> None:
        """Wait until the client has read everything, or the connection has ended."""
        while self.producerPaused and self.connected:
            if self._readable is None:
                self._readable = asyncio.Event()
            await self._readable.wait()

    def doWrite(self) -> Any:
        """Write what the kernel did not take before, and wake `wait_until_read` (overrides Twisted)."""
        why = super().doWrite()
        if not self.producerPaused:
            self._wake()
        return why

    def connectionLost(self, reason: Any) -> None:
        """Wake `wait_until_read` (overrides Twisted)."""
        super().connectionLost(reason)
        self._wake()

    def _wake(self) -> None:
        if self._readable is not None:
            self._readable.set()
            self._readable = None
