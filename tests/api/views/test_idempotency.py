"""Idempotency keys of Responses: a request that is sent again gets the response of the first one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from responses_app.engines.replay.engine import Delay, Fault, Recording, Tokens
from responses_app.engines.replay.tape import Hold
from responses_app.models import Response
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, ApiCase, KeyedClient, record_text, tokens
from tests.support.waiting import LIMIT_S, eventually

BROKEN = Recording([Tokens(tokens(WEATHER[: WEATHER.index("Par")])), Fault("down", "killed")])
REFUSED = Recording([Fault("bad", "too long")])
BUSY = Recording([Fault("busy", "queue full")])
SLOW = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Delay(60), Tokens(tokens(" done<|return|>"))])


class IdempotencyTest(ApiCase):
    """With a scripted engine, which has one recording for each generation."""

    async def send(self, client: KeyedClient, idempotency_key: str = "mine", **body: Any) -> Any:
        """POST /v1/responses with a key of the client."""
        whole = orjson.dumps({"model": "m", "input": "Hi", **body})
        headers = {"Idempotency-Key": idempotency_key}
        return await client.post("/v1/responses", whole, content_type="application/json", headers=headers)

    async def test_repeated_request_gets_the_same_bytes(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            first, second = [await self.send(client) for _ in range(2)]
            self.assertEqual((first.status_code, second.content), (200, first.content))
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_equal_requests_at_the_same_time_get_one_response(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            answers = await asyncio.gather(*(self.send(client) for _ in range(6)))
            self.assertEqual([answer.status_code for answer in answers], [200] * 6)
            self.assertEqual(len({answer.content for answer in answers}), 1)
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_repeated_stream_begins_at_its_first_event(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            first, second = [
                b"".join([part async for part in (await self.send(client, stream=True)).streaming_content]) for _ in range(2)
            ]
            self.assertEqual(second, first)
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_another_key_or_body_or_none_is_another_response(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            answers = [await self.send(client), await self.send(client, "other"), await self.send(client, metadata={"a": "b"})]
            answers.append(await self.post(client))
            self.assertEqual(len({orjson.loads(answer.content)["id"] for answer in answers}), 4)

    async def test_repeated_background_request_gets_the_present_state(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            queued = orjson.loads((await self.send(client, background=True)).content)
            self.assertEqual(queued["status"], "queued")

            async def is_completed() -> bool:
                return await Response.objects.filter(status="completed").aexists()

            await eventually(is_completed)
            again = await self.send(client, background=True)
            self.assertEqual(again.content, (await client.get(f"/v1/responses/{queued['id']}")).content)
            self.assertEqual(orjson.loads(again.content)["status"], "completed")

    async def test_repeated_request_fails_as_the_first_one_did_if_the_fault_is_in_the_request(self) -> None:
        async with self.serving(REFUSED) as client:
            first, second = [await self.send(client) for _ in range(2)]
            self.assertEqual((first.status_code, second.status_code), (400, 400))
            self.assertEqual(orjson.loads(second.content)["error"]["message"], orjson.loads(first.content)["error"]["message"])

    async def test_request_that_failed_at_the_engine_begins_when_it_is_sent_again(self) -> None:
        # No engine continues a call that was chosen by chance.
        bound: dict[str, Any] = {"tools": [TOOL], "tool_choice": "required", "temperature": 1}
        async with self.serving(BROKEN, record_text(WEATHER)) as client:
            answers = [await self.send(client, **bound) for _ in range(3)]
            self.assertEqual([answer.status_code for answer in answers], [500, 200, 200])
            self.assertEqual(answers[2].content, answers[1].content)

    async def test_request_that_an_overloaded_engine_refused_begins_when_it_is_sent_again(self) -> None:
        async with self.serving(BUSY, BUSY, record_text(HELLO)) as client:
            answers = [await self.send(client) for _ in range(3)]
            self.assertEqual([answer.status_code for answer in answers], [429, 429, 200])

    async def test_request_whose_connection_broke_begins_when_it_is_sent_again(self) -> None:
        async with self.serving(SLOW, record_text(HELLO)) as client:
            response = await self.send(client, stream=True)
            parts = response.streaming_content
            await anext(parts)
            await parts.aclose()
            response.close()
            await eventually(Response.objects.filter(status="cancelled").aexists)
            again = await self.read(await self.send(client, stream=True))
            self.assertEqual(again[-1]["type"], "response.completed")

    async def test_repeated_stream_goes_on_when_the_first_client_leaves(self) -> None:
        gate = Path(self.enterContext(TemporaryDirectory()), "open")
        held = Recording([Tokens(tokens("<|channel|>final<|message|>Half")), Hold(gate), Tokens(tokens(" done<|return|>"))])
        async with self.serving(held) as client:
            first, second = [await self.send(client, stream=True) for _ in range(2)]
            parts = first.streaming_content
            await anext(parts)
            await parts.aclose()
            first.close()
            await asyncio.to_thread(gate.touch)
            events = await asyncio.wait_for(self.read(second), LIMIT_S)
            self.assertEqual(events[-1]["response"]["output"][0]["content"][0]["text"], "Half done")
            self.assertEqual(await Response.objects.acount(), 1)

    async def test_background_request_that_was_cancelled_stays_cancelled(self) -> None:
        async with self.serving(SLOW) as client:
            uid = orjson.loads((await self.send(client, background=True)).content)["id"]
            await eventually(Response.objects.filter(status="in_progress").aexists)
            await client.post(f"/v1/responses/{uid}/cancel")
            again = orjson.loads((await self.send(client, background=True)).content)
            self.assertEqual((again["id"], again["status"]), (uid, "cancelled"))
