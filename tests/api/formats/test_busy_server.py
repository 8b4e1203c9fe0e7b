"""Chat Completions and Messages while the server or its engine is busy: the status says so, also to a stream."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from django.test import AsyncClient, override_settings

from responses_app.engines.replay.engine import Delay, Fault, Recording
from responses_app.models import Response
from tests.support.api.case import ApiCase
from tests.support.waiting import eventually

PATHS = ("/v1/chat/completions", "/v1/messages")


class BusyServerTest(ApiCase):
    """Requests of both formats."""

    async def send(self, client: AsyncClient, path: str, *, stream: bool) -> Any:
        """POST a request of either format."""
        body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
        return await client.post(path, orjson.dumps(body), content_type="application/json")

    async def check_refusal(self, client: AsyncClient, path: str, retry_after: str, *, stream: bool) -> None:
        """Check a 429, which clients send again by themselves."""
        response = await self.send(client, path, stream=stream)
        self.assertEqual((response.status_code, response["Retry-After"]), (429, retry_after))
        self.assertEqual(orjson.loads(response.content)["error"]["type"], "rate_limit_error")

    async def test_full_queue_and_refusing_engine_are_429_and_nothing_is_kept(self) -> None:
        async with self.serving() as client:
            for path in PATHS:
                for stream in (False, True):
                    with self.subTest(path=path, stream=stream):
                        with override_settings(RESPONSES_MAX_CONCURRENT=0):
                            await self.check_refusal(client, path, "1", stream=stream)
                        self.engine.refusal_s = 6.5
                        await self.check_refusal(client, path, "7", stream=stream)
                        self.engine.refusal_s = 0.0
            self.assertEqual(await Response.objects.acount(), 0)

    async def test_first_refusal_of_an_engine_is_429_or_an_error_in_the_stream(self) -> None:
        async with self.serving(*[Recording([Fault("busy", "queue full")])] * 4) as client:
            for path, kind in zip(PATHS, ("rate_limit_error", "overloaded_error"), strict=True):
                await self.check_refusal(client, path, "1", stream=False)
                response = await self.send(client, path, stream=True)
                body = b"".join([part async for part in response.streaming_content])
                lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b'data: {"')]
                self.assertEqual(orjson.loads(lines[-1])["error"]["type"], kind)

    async def test_a_restart_asks_the_client_to_send_the_request_again(self) -> None:
        """The client knows no id by which to retrieve the answer."""
        for path in PATHS:
            async with self.serving(Recording([Delay(60)])) as client:
                answer = asyncio.create_task(self.send(client, path, stream=False))
                await eventually(lambda: Response.objects.filter(uid__in=list(self.hub.runs)).aexists())
                await self.hub.drain(0.01)
                response = await answer
                self.assertEqual(response.status_code, 503)
                self.assertIn("Send the request again.", orjson.loads(response.content)["error"]["message"])
