"""Streams of which a run pushes events to the connection: the bytes, the order and the end are those of a replay."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import Response
from responses_app.wire.asgi_extensions import DIRECT_WRITER
from responses_app.wire.sse import StreamInterrupted
from tests.support.api.case import THOUGHT, ApiCase, KeyedClient, first_event, sse, tokens
from tests.support.runs.server_tools import GatedEngine
from tests.support.waiting import eventually

PAUSED = Recording([step for token in tokens(THOUGHT) for step in (Tokens([token]), Delay(0.02))])
LIMIT_S = 60.0


class PushedClient(KeyedClient):
    """Test client whose connection has a DirectWriter, which takes `taken` of each ten writes. `parts` is the body of the stream."""

    def __init__(self, secret: str, taken: int = 10) -> None:
        super().__init__(secret)
        self.parts: list[bytes] = []
        self.asked = self.pushed = 0
        self._taken = taken

    def _base_scope(self, **request: Any) -> dict[str, Any]:
        return {**super()._base_scope(**request), "extensions": {DIRECT_WRITER: self}}  # type: ignore[misc]

    def can_write_now(self) -> bool:
        """Return True for `taken` of each ten calls after the first part of the body."""
        self.asked += 1
        return bool(self.parts) and self.asked % 10 < self._taken

    def write_now(self, parts: Sequence[bytes]) -> None:
        """Take a piece of the body."""
        self.parts += parts
        self.pushed += 1

    async def read(self, response: Any) -> bytes:
        """Read a stream as the server does, and return the body."""
        async for part in response.streaming_content:
            self.parts.append(part)
        return b"".join(self.parts)


class PushedStreamsTest(ApiCase):
    """A recording with pauses, so that its stream waits for each event. It stops in front of the first token until the gate opens."""

    def setUp(self) -> None:
        super().setUp()
        self.engine = self.held = GatedEngine(open_tokens=0)

    async def begin(self, client: PushedClient) -> asyncio.Task[bytes]:
        """Begin a stream, let eight tokens pass when the client reads it, and return after the first pushed event."""
        reading = asyncio.create_task(client.read(await self.post(client, stream=True)))
        await eventually(lambda: client.parts and self.held.reached.is_set(), limit_s=LIMIT_S)
        self.held.open_tokens = 8
        self.held.gate.set()
        self.held.gate.clear()
        await eventually(lambda: client.pushed, limit_s=LIMIT_S)
        return reading

    async def test_bytes_are_those_of_a_replay_however_often_the_client_is_behind(self) -> None:
        self.held.gate.set()
        async with self.serving(*[PAUSED] * 3):
            for taken in (0, 5, 10):
                with self.subTest(taken=taken):
                    client, later = PushedClient(self.secret, taken), PushedClient(self.secret)
                    body = await client.read(await self.post(client, stream=True))
                    self.assertEqual(sse(body)[-1]["type"], "response.completed")
                    self.assertEqual(bool(client.pushed), bool(taken))
                    uid = first_event(body)["response"]["id"]
                    self.assertEqual(await later.read(await later.get(f"/v1/responses/{uid}?stream=true")), body)

    async def test_second_client_of_a_running_response_is_pushed_to_as_well(self) -> None:
        async with self.serving(PAUSED):
            first, second = PushedClient(self.secret), PushedClient(self.secret)
            reading = await self.begin(first)
            uid = first_event(first.parts[0])["response"]["id"]
            replaying = asyncio.create_task(second.read(await second.get(f"/v1/responses/{uid}?stream=true")))
            await eventually(lambda: second.parts, limit_s=LIMIT_S)
            self.held.gate.set()
            self.assertEqual(await replaying, await reading)
            self.assertTrue(second.pushed)

    async def test_client_that_disconnects_between_pushed_events_cancels_its_run(self) -> None:
        async with self.serving(PAUSED):
            reading = await self.begin(PushedClient(self.secret))
            (run,) = self.hub.runs.values()
            reading.cancel()
            await asyncio.wait_for(run.wait_terminal(), LIMIT_S)
            self.assertEqual((await Response.objects.aget()).status, "cancelled")

    async def test_stream_of_a_stopping_process_is_interrupted_behind_pushed_events(self) -> None:
        async with self.serving(PAUSED):
            client = PushedClient(self.secret)
            reading = await self.begin(client)
            await self.hub.drain(0)
            with self.assertRaises(StreamInterrupted):
                await reading
            self.assertNotIn(b"[DONE]", b"".join(client.parts))
