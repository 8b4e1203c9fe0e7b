"""Limit of the bytes of queued WebSocket requests, per project over all connections."""

from __future__ import annotations

from django.test import override_settings

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.sockets.consumer import ResponsesSocket
from tests.support.api.case import HELLO, record_text, tokens
from tests.support.api.websocket_case import SocketCase, SocketClient
from tests.support.waiting import eventually

LONG = "x" * 700_000


def queued_bytes() -> list[int]:
    """Return the bytes of the queued requests of each open connection."""
    return [connection._streams.queued_bytes for connection in ResponsesSocket.open_connections]


class WaitingBytesTest(SocketCase):
    async def begin(self, socket: SocketClient) -> None:
        """Start a response without an end, so that the next request of the connection waits."""
        await socket.create()
        self.assertEqual((await socket.receive())["type"], "response.created")

    @override_settings(RESPONSES_MAX_UNFINISHED_MIB_PER_KEY=1)
    async def test_limit_counts_all_connections_of_the_project(self) -> None:
        slow = Recording([Delay(300), Tokens(tokens(HELLO))])
        async with self.serving(slow, slow), self.socket() as first, self.socket() as second:
            await self.begin(first)
            await self.begin(second)
            await first.create(LONG)
            # The server parses long frames in threads. Without this wait either connection may be the rejected one.
            await eventually(lambda: any(queued_bytes()))
            await second.create(LONG)
            event = await second.receive()
            while event["type"] != "error":
                event = await second.receive()
            self.assertEqual((event["status"], event["error"]["code"]), (429, "rate_limit_exceeded"))

    @override_settings(RESPONSES_MAX_UNFINISHED_MIB_PER_KEY=1)
    async def test_started_request_is_not_counted(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3), self.socket() as socket:
            for _ in range(3):
                self.assertEqual((await socket.create_response(LONG))["status"], "completed")
