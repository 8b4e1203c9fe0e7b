"""`/input_tokens` with MCP servers: the number that a create reports, from a cached list or from the server."""

from __future__ import annotations

from typing import Any, ClassVar

import orjson
from django.test import AsyncClient

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Response
from tests.support.api.case import HELLO, record_text
from tests.support.api.mcp_case import McpCase

CHOICE = {"type": "mcp", "server_label": "files"}


class McpInputTokensTest(McpCase):
    dead: ClassVar[dict[str, Any]] = {"type": "mcp", "server_label": "dead", "server_url": "http://127.0.0.1:1/mcp"}

    async def count(self, client: AsyncClient, **body: Any) -> Any:
        body = {"model": "m", "input": "Hi", **body}
        return await client.post("/v1/responses/input_tokens", orjson.dumps(body), content_type="application/json")

    async def check(self, client: AsyncClient, **body: Any) -> dict[str, Any]:
        """Check that the count equals the usage of a create, and return the response."""
        before = await Response.objects.acount()
        counts = [orjson.loads((await self.count(client, **body)).content)["input_tokens"] for _ in range(2)]
        self.assertEqual((await Response.objects.acount(), len(self.engine.requests)), (before, before))
        made = await self.made(client, **body)
        self.assertEqual(counts, [made["usage"]["input_tokens"]] * 2)
        return made

    async def test_count_equals_the_usage_of_a_create(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            first = await self.check(client, tools=[self.tool])
            less = await self.check(client, tools=[{**self.tool, "allowed_tools": ["add"]}])
            self.assertLess(less["usage"]["input_tokens"], first["usage"]["input_tokens"])
            await self.check(client, tools=[self.tool], previous_response_id=first["id"])
            # The model reads why the listing failed.
            await self.check(client, tools=[self.dead, self.tool])

    async def test_list_that_the_context_has_no_place_for_is_not_counted(self) -> None:
        self.engine = ReplayEngine(max_model_len=500)
        async with self.serving(record_text(HELLO)) as client:
            made = await self.check(client, tools=[self.tool])
            self.assertIn("do not fit", made["output"][0]["error"])

    async def test_count_is_refused_where_a_create_is(self) -> None:
        async with self.serving() as client:
            for body in (
                {"tools": [self.dead], "tool_choice": "required"},
                {"tools": [self.tool], "tool_choice": {**CHOICE, "name": "x"}},
            ):
                with self.subTest(body=str(body)):
                    self.refused(await self.count(client, **body), 400, "invalid_prompt", None)
                    self.refused(await self.post(client, **body), 400, "invalid_prompt", None)
