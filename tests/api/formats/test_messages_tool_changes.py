"""System messages between the others: added and removed tools, and texts for a single turn. A hosted search of tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from tests.support.api.case import THOUGHT, TOOL, record_text
from tests.support.api_formats.messages_case import HI, MessagesCase

WEATHER = {"name": "get_weather", "description": TOOL["description"], "input_schema": TOOL["parameters"]}
TIME = {**WEATHER, "name": "get_time"}
DEFERRED = {**WEATHER, "defer_loading": True}
CODE = {"type": "code_execution_20250522", "name": "code_execution"}
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


def addition(name: str) -> dict[str, Any]:
    """Return a block that adds a tool of the request."""
    return {"type": "tool_addition", "tool": {"type": "tool_reference", "name": name}}


def definition(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a block that adds a tool by definition."""
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": tool}}


def removal(name: str) -> dict[str, Any]:
    """Return a block that removes a tool."""
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}


def after(*blocks: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    """Return messages whose last has the blocks."""
    return [*HI, {"role": "system", "content": blocks, **fields}]


class ToolChangesTest(MessagesCase):
    """Changes, and the prompts of messages with the tools that result."""

    async def assert_same_prompts(self, changed: Sequence[dict[str, Any]], plain: dict[str, Any]) -> None:
        """Check that each body has the prompt of the plain body."""
        async with self.serving(*[record_text(THOUGHT)] * (len(changed) + 1)) as client:
            await self.message(client, **plain)
            expected = self.engine.requests[-1].prompt
            for body in changed:
                with self.subTest(body=body):
                    await self.message(client, **body)
                    self.assertEqual(self.engine.requests[-1].prompt, expected)

    async def test_added_and_removed_tools(self) -> None:
        changed: list[dict[str, Any]] = [
            {"messages": after(definition(WEATHER))},
            {"messages": after(definition(WEATHER)), "tools": [{**WEATHER, "description": "Old"}]},
            {"messages": after(removal("get_time")), "tools": [WEATHER, TIME]},
            {"messages": after(removal("get_weather"), addition("get_weather")), "tools": [WEATHER]},
            {"messages": after(addition("get_weather")), "tools": [DEFERRED]},
            {"messages": after(definition(TIME), removal("get_time")), "tools": [WEATHER]},
        ]
        await self.assert_same_prompts(changed, {"tools": [WEATHER]})

    async def test_an_added_tool_can_be_chosen(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            refused = await self.send(client, tool_choice={"type": "tool", "name": "get_time"}, tools=[WEATHER])
            self.assertEqual(refused.status_code, 400)
            choice = {"type": "tool", "name": "get_time"}
            await self.message(client, messages=after(definition(TIME)), tool_choice=choice, tools=[WEATHER])

    async def test_deferred_tools_are_offered_from_the_start_beside_a_hosted_search(self) -> None:
        changed = [
            {"tools": [{"type": kind, "name": kind.removesuffix("_20251119")}, DEFERRED]}
            for kind in ("tool_search_tool_bm25_20251119", "tool_search_tool_regex_20251119", "tool_search_tool_regex")
        ]
        await self.assert_same_prompts(changed, {"tools": [WEATHER]})

    async def test_a_text_is_cleared_by_the_next_message_of_the_user(self) -> None:
        once = {"role": "system", "content": "Be brief.", "clear_at": "next_user_message"}
        answer, more = {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "More"}
        changed = [{"messages": [*HI, once, answer, more]}]
        await self.assert_same_prompts(changed, {"messages": [*HI, answer, more]})
        lasting = {"role": "system", "content": "Be brief."}
        await self.assert_same_prompts(
            [{"messages": [*HI, once]}, {"messages": [*HI, {**lasting, "clear_at": "never"}]}], {"messages": [*HI, lasting]}
        )

    async def test_an_effort_needs_no_content(self) -> None:
        effort = {"role": "system", "output_config": {"effort": "low"}}
        await self.assert_same_prompts([{"messages": [*HI, effort]}], {"output_config": {"effort": "low"}})

    async def test_errors_name_the_path(self) -> None:
        tool = "messages[1].content[0].tool"
        cases: list[tuple[dict[str, Any], str]] = [
            ({"messages": after(addition("x"))}, f"'{tool}.name': the request has no tool with the name 'x'"),
            ({"messages": after(removal("x"))}, f"'{tool}.name'"),
            ({"messages": after({**removal("x"), "tool": {"type": "mcp_toolset_reference"}})}, f"{tool}.type"),
            ({"messages": after(definition({"name": "a b", "input_schema": {}}))}, f"'{tool}.definition.name'"),
            (
                {"messages": after(definition({**WEATHER, "input_schema": {"type": "array"}}))},
                f"{tool}.definition.input_schema",
            ),
            ({"messages": after(definition({"type": "mcp_toolset"}))}, f"'{tool}.definition.type'"),
            ({"messages": after(definition(SEARCH)), "tools": [CODE]}, "'messages[1].content[0].tool.definition.max_uses'"),
            ({"messages": [{"role": "user", "content": [addition("x")]}]}, "messages[0].content[0].type"),
            ({"messages": [{"role": "user", "content": "x", "clear_at": "never"}]}, "messages[0].clear_at"),
            ({"messages": after(clear_at="soon")}, "messages[1].clear_at"),
            ({"messages": [*HI, {"role": "system"}]}, "'messages[1].content'"),
            ({"cache_control": "x"}, "'cache_control'"),
            ({"tools": [{"type": "tool_search_tool_regex", "name": "tool_search_tool_regex", "x": 1}]}, "'tools[0].x'"),
        ]
        async with self.serving() as client:
            for body, path in cases:
                with self.subTest(path=path):
                    response = await self.send(client, **body)
                    self.assertEqual(response.status_code, 400, response.content)
                    self.assertIn(path, orjson.loads(response.content)["error"]["message"])
