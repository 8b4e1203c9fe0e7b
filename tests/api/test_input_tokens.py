"""Counting a prompt: the number that a create with the same body would report, its errors too, and nothing kept."""

from __future__ import annotations

from typing import Any

import orjson

from responses_app.models import Event, Item, Response
from tests.support.api.case import HELLO, TOOL, ApiCase, record_text


class InputTokensTest(ApiCase):
    """With a scripted engine and the real database."""

    async def count(self, client: Any, **body: Any) -> Any:
        """POST /v1/responses/input_tokens."""
        return await client.post(
            "/v1/responses/input_tokens",
            orjson.dumps({"model": "m", "input": "Hi", **body}),
            content_type="application/json",
        )

    async def rows(self) -> int:
        return await Response.objects.acount() + await Item.objects.acount() + await Event.objects.acount()

    async def test_count_equals_the_usage_of_a_create_and_stores_nothing(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 5) as client:
            first = orjson.loads((await self.post(client, input="one")).content)
            for body in (
                {},
                {"instructions": "Be brief.", "reasoning": {"effort": "high"}},
                {"tools": [TOOL], "tool_choice": "required", "stream": False},
                {"previous_response_id": first["id"], "input": [{"role": "user", "content": "two"}], "store": False},
            ):
                with self.subTest(body=body):
                    before = await self.rows()
                    counted = orjson.loads((await self.count(client, **body)).content)
                    self.assertEqual(await self.rows(), before)
                    made = orjson.loads((await self.post(client, **body)).content)
                    expected = {"object": "response.input_tokens", "input_tokens": made["usage"]["input_tokens"]}
                    self.assertEqual(counted, expected)

    async def test_count_refuses_the_same_bodies_as_a_create(self) -> None:
        async with self.serving() as client:
            for body in (
                {"model": "x"},
                {"model": None},
                {"input": 5},
                {"strem": True},
                {"tools": [{"type": "function"}]},
                {"previous_response_id": "resp_nope"},
            ):
                with self.subTest(body=str(body)[:80]):
                    created, counted = await self.post(client, **body), await self.count(client, **body)
                    self.assertEqual((created.status_code, counted.status_code), (400, 400))
                    self.assertEqual(orjson.loads(counted.content), orjson.loads(created.content))
            self.refused(await self.count(client, personality="friendly"), 400, "unsupported_parameter", "personality")
            self.assertEqual((await self.count(client, personality=None)).status_code, 200)
            self.engine._max_model_len = 64
            self.refused(await self.count(client, input="word " * 200), 400, "context_length_exceeded", "input")
            self.assertEqual(await self.rows(), 0)
            self.refused(await client.get("/v1/responses/input_tokens"), 405, None, None)
