"""WebSocket client of the ASGI application for tests."""

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
TIMEOUT_S = 60


class SocketClient:
    """Accepted WebSocket connection."""

    def __init__(self, socket: WebsocketCommunicator) -> None:
        self.socket = socket

    async def send(self, **frame: Any) -> None:
        """Send a frame."""
        await self.socket.send_to(text_data=orjson.dumps(frame).decode())

    async def create(self, input: Any = "Hi", **frame: Any) -> None:
        """Send a `response.create` for the model `m`."""
        await self.send(type="response.create", model="m", input=input, **frame)

    async def receive(self) -> dict[str, Any]:
        """Return the next frame."""
        event: dict[str, Any] = orjson.loads(await self.socket.receive_from(TIMEOUT_S))
        return event

    async def receive_response(self, stream_id: str | None = None) -> list[dict[str, Any]]:
        """Return all events up to a terminal event or an error. All events must have `stream_id`."""
        events = [await self.receive()]
        while events[-1]["type"] not in (*TERMINAL, "error"):
            events.append(await self.receive())
        assert {event.get("stream_id") for event in events} == {stream_id}, events
        return events

    async def create_response(self, input: Any = "Hi", stream_id: str | None = None, **frame: Any) -> dict[str, Any]:
        """Create a response, validate the events and return the final snapshot."""
        await self.create(input, **frame, **({"stream_id": stream_id} if stream_id else {}))
        events = await self.receive_response(stream_id)
        assert events[-1]["type"] in TERMINAL, events[-1]
        assert_valid(events, stream_id)
        response: dict[str, Any] = events[-1]["response"]
        return response

    async def create_rejected(self, *args: Any, **frame: Any) -> dict[str, Any]:
        """Send a `response.create` and return the error."""
        await self.create(*args, **frame)
        (event,) = await self.receive_response(frame.get("stream_id"))
        return error(event)

    async def close_code(self) -> int:
        """Return the close code of the server."""
        message = await self.socket.receive_output(TIMEOUT_S)
        assert message["type"] == "websocket.close", message
        code: int = message.get("code", 1000)
        return code


def error(event: dict[str, Any]) -> dict[str, Any]:
    """Check the shape of an `error` event and return the error with its status."""
    assert event["type"] == "error", event
    assert set(event) - {"stream_id"} == {"type", "status", "error"}, event
    assert set(event["error"]) == {"type", "code", "message", "param"}
    assert isinstance(event["error"]["code"], str)
    return {"status": event["status"], **event["error"]}


def assert_valid(events: list[dict[str, Any]], stream_id: str | None = None) -> None:
    """Assert that the events conform to the protocol."""
    validator = StreamValidator(stream_id=stream_id, socket=True)
    assert [violation for event in events for violation in validator.feed(event)] + validator.close() == []


class SocketCase(ApiCase):
    """API test case with WebSocket connections."""

    @asynccontextmanager
    async def socket(
        self, path: str = "/v1/responses", secret: str | None = None, cleanly: bool = True
    ) -> AsyncIterator[SocketClient]:
        """Open a WebSocket and disconnect at the end."""
        headers = [(b"authorization", f"Bearer {secret or self.secret}".encode())]
        communicator = WebsocketCommunicator(application, path, headers)
        accepted, _ = await communicator.connect(TIMEOUT_S)
        self.assertTrue(accepted)
        try:
            yield SocketClient(communicator)
        finally:
            await communicator.disconnect(timeout=TIMEOUT_S)
