"""WebSocket scenarios of the public Open Responses test suite."""

from __future__ import annotations

import time
from typing import Any

import orjson

from responses_app.protocol.conformance import StreamValidator
from tests.support.api.case import HELLO, THOUGHT, record_text
from tests.support.api.websocket_case import SocketCase, SocketClient, error

PATH = "/openresponses/v1/responses"


class OpenResponsesTest(SocketCase):
    async def turn(self, socket: SocketClient, input: Any = "Say hello.", **fields: Any) -> dict[str, Any]:
        """Send a `response.create` as the suite does and return the last event."""
        await socket.send(type="response.create", model="m", input=input, **fields)
        events = await socket.receive_response()
        if events[-1]["type"] != "error":
            validator = StreamValidator("openresponses", socket=True)
            self.assertEqual([violation for event in events for violation in validator.feed(event)] + validator.close(), [])
        return events[-1]

    async def completed(self, socket: SocketClient, *args: Any, **fields: Any) -> str:
        event = await self.turn(socket, *args, **fields)
        self.assertEqual((event["type"], event["response"]["status"]), ("response.completed", "completed"))
        uid: str = event["response"]["id"]
        return uid

    async def missing(self, socket: SocketClient, *args: Any, **fields: Any) -> None:
        self.assertEqual(error(await self.turn(socket, *args, **fields))["code"], "previous_response_not_found")

    async def test_websocket_response(self) -> None:
        async with self.serving(record_text(THOUGHT)), self.socket(PATH) as socket:
            await self.completed(socket, [{"type": "message", "role": "user", "content": "Say hello."}])

    async def test_websocket_sequential_responses(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket(PATH) as socket:
            self.assertNotEqual(await self.completed(socket, store=False), await self.completed(socket, store=False))

    async def test_websocket_continuation(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)), self.socket(PATH) as socket:
            first = await self.completed(socket, store=False)
            await self.completed(socket, store=False, previous_response_id=first)

    async def test_websocket_reconnect_store_false_recovery(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)):
            async with self.socket(PATH) as socket:
                first = await self.completed(socket, store=False)
            async with self.socket(PATH) as socket:
                await self.missing(socket, store=False, previous_response_id=first)
                await self.completed(socket, store=False)

    async def test_websocket_previous_response_not_found(self) -> None:
        async with self.serving(), self.socket(PATH) as socket:
            uid = f"resp_openresponses_missing_{time.time_ns() // 10**6}"
            await self.missing(socket, store=False, previous_response_id=uid)

    async def test_websocket_failed_continuation_evicts_cache(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket(PATH) as socket:
            first = await self.completed(socket, store=False)
            output = {"type": "function_call_output", "call_id": "call_openresponses_missing", "output": "{}"}
            failed = await self.turn(socket, [output], store=False, previous_response_id=first)
            self.assertEqual(failed["type"], "error")
            await self.missing(socket, store=False, previous_response_id=first)

    async def test_websocket_compact_new_chain(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client, self.socket(PATH) as socket:
            body = {"model": "m", "input": [{"type": "message", "role": "user", "content": "Hi"}]}
            compacted = await client.post(
                "/openresponses/v1/responses/compact", orjson.dumps(body), content_type="application/json"
            )
            more = {"type": "message", "role": "user", "content": "Go on."}
            await self.completed(socket, [*compacted.json()["output"], more], tools=[], store=False)
