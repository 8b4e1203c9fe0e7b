"""What the tests of WebSockets share: a client of the application itself, frame by frame."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from channels.testing import WebsocketCommunicator

from responses_app.protocol.conformance import StreamValidator
from responses_app.sockets.routing import application
from tests.support.api.case import ApiCase

TERMINAL = ("response.completed", "response.incomplete", "response.failed")
PATIENCE = 10


class Talk:
    """One WebSocket, accepted."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket

    async def say(self, **frame: Any) -> None:
        """Send a frame."""
        await self.socket.send_to(text_data=orjson.dumps(frame).decode())

    async def create(self, input: Any = "Hi", **frame: Any) -> None:
        """Send a `response.create` for the model `m`."""
        await self.say(type="response.create", model="m", input=input, **frame)

    async def hear(self) -> dict[str, Any]:
        """The next frame."""
        event: dict[str, Any] = orjson.loads(await self.socket.receive_from(PATIENCE))
        return event

    async def turn(self, lane: str | None = None) -> list[dict[str, Any]]:
        """All events up to the one that ends a response, which are all of that lane, or one error."""
        events = [await self.hear()]
        while events[-1]["type"] not in (*TERMINAL, "error"):
            events.append(await self.hear())
        assert {event.get("stream_id") for event in events} == {lane}, events
        return events

    async def made(self, input: Any = "Hi", lane: str | None = None, **frame: Any) -> dict[str, Any]:
        """A response, whose events the judge has nothing against."""
        await self.create(input, **frame, **({"stream_id": lane} if lane else {}))
        events = await self.turn(lane)
        assert events[-1]["type"] in TERMINAL, events[-1]
        judge(events, lane)
        response: dict[str, Any] = events[-1]["response"]
        return response

    async def refused(self, *args: Any, **frame: Any) -> dict[str, Any]:
        """The one error that answers a `response.create`."""
        await self.create(*args, **frame)
        (event,) = await self.turn(frame.get("stream_id"))
        return error(event)

    async def closed(self) -> int:
        """The code with which the server closes."""
        message = await self.socket.receive_output(PATIENCE)
        assert message["type"] == "websocket.close", message
        code: int = message.get("code", 1000)
        return code


def error(event: dict[str, Any]) -> dict[str, Any]:
    """The error in an envelope of the right shape."""
    assert event["type"] == "error", event
    assert set(event) - {"stream_id"} == {"type", "status", "error"}, event
    assert set(event["error"]) == {"type", "code", "message", "param"}
    assert isinstance(event["error"]["code"], str)
    return {"status": event["status"], **event["error"]}


def judge(events: list[dict[str, Any]], lane: str | None = None) -> None:
    """The judge of the grammar has nothing against them."""
    check = StreamValidator(stream_id=lane, socket=True)
    assert [broken for event in events for broken in check.feed(event)] + check.close() == []


class SocketCase(ApiCase):
    """As the API's tests, with WebSockets."""

    @asynccontextmanager
    async def socket(self, path: str = "/v1/responses", secret: str | None = None, cleanly: bool = True) -> AsyncIterator[Talk]:
        """A WebSocket; unless it is closed before, the client closes it at the end."""
        headers = [(b"authorization", f"Bearer {secret or self.secret}".encode())]
        communicator = WebsocketCommunicator(application, path, headers)
        accepted, _ = await communicator.connect(PATIENCE)
        self.assertTrue(accepted)
        try:
            yield Talk(communicator)
        finally:
            await communicator.disconnect(timeout=PATIENCE)
