"""Lists of MCP tools that the context of the model has no place for: the listing fails, and the response goes on without these tools."""

from __future__ import annotations

from typing import Any

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.protocol.reducer import fold
from tests.support.api.case import HELLO, bare, record_text
from tests.support.api.mcp_case import McpCase

# Tokens: the prompt fits with one of the tools, and not with all tools of the tests' server, which take about 700.
CONTEXT = 400


class LargeListTest(McpCase):
    def setUp(self) -> None:
        super().setUp()
        self.engine = ReplayEngine(max_model_len=CONTEXT)

    def check_listing(self, made: dict[str, Any]) -> None:
        listing = made["output"][0]
        self.assertEqual((listing["type"], listing["tools"]), ("mcp_list_tools", []))
        self.assertIn(f"do not fit the context of the model, which has {CONTEXT} tokens", listing["error"])

    async def test_response_goes_on_without_the_tools(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            made = await self.made(client, tools=[self.tool])
            self.check_listing(made)
            self.assertEqual((made["status"], made["output"][-1]["type"]), ("completed", "message"))
            events = await self.stream(client, tools=[self.tool])
            self.check_listing(events[-1]["response"])
            self.assertEqual(fold(bare(events)), events[-1]["response"])
            self.assertIn("response.mcp_list_tools.failed", [event["type"] for event in events])
            second = await self.made(client, tools=[self.tool], previous_response_id=made["id"])
            self.assertEqual(second["status"], "completed")

    async def test_response_in_the_background_goes_on_without_the_tools(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, tools=[self.tool], background=True)
            self.assertEqual((made["status"], made["output"]), ("queued", []))
            events = await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true"))
            ended = events[-1]["response"]
            self.check_listing(ended)
            self.assertEqual((ended["status"], ended["output"][-1]["type"]), ("completed", "message"))
            self.assertEqual(fold(bare(events)), ended)

    async def test_required_call_fails_as_invalid_prompt(self) -> None:
        async with self.serving() as client:
            for choice in ("required", {"type": "mcp", "server_label": "files"}):
                with self.subTest(choice=choice):
                    response = await self.post(client, tools=[self.tool], tool_choice=choice)
                    self.refused(response, 400, "invalid_prompt", None)
                    events = await self.stream(client, tools=[self.tool], tool_choice=choice)
                    self.check_listing(events[-1]["response"])
                    self.assertEqual(events[-1]["response"]["error"]["code"], "invalid_prompt")

    async def test_some_of_the_tools_fit(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, tools=[{**self.tool, "allowed_tools": ["add"]}])
            self.assertEqual([tool["name"] for tool in made["output"][0]["tools"]], ["add"])
