"""`max_tool_calls` with an MCP server: no item for a call beyond the limit, and the tools are no longer offered."""

from __future__ import annotations

from typing import Any

from tests.support.api.case import HELLO, record_text
from tests.support.api.mcp_case import McpCase
from tests.support.runs.server_tools import START, prompt_text

DELETE = '<|channel|>commentary to=functions.files__delete <|constrain|>json<|message|>{"path":"a.txt"}<|call|>'
DELETE_TWICE = DELETE.replace("<|call|>", "<|end|>") + START + DELETE.replace("a.txt", "b.txt")
PICK = {"type": "function", "name": "pick", "parameters": {"type": "object", "properties": {}}}
NOTE = "limit of tool calls"


class McpCallLimitTest(McpCase):
    async def test_call_beyond_the_limit_has_no_item(self) -> None:
        tool = {**self.tool, "require_approval": "never"}
        names = [{"type": "mcp", "server_label": "files"}, {"type": "function", "name": "pick"}]
        choice = {"type": "allowed_tools", "mode": "auto", "tools": names}
        async with self.serving(record_text(DELETE_TWICE), record_text(HELLO)) as client:
            made = await self.made(client, tools=[tool, PICK], tool_choice=choice, max_tool_calls=1)
            self.assertEqual([one["type"] for one in made["output"]], ["mcp_list_tools", "mcp_call", "message"])
            self.assertEqual(self.calls(made), [(None, "deleted a.txt")])
            self.assertEqual([one["type"] for one in made["output_problems"]], ["call_limit_reached"])
            prompt = prompt_text(self.engine.requests[-1].prompt)
            self.assertEqual((prompt.count(NOTE), "type pick" in prompt, "type files__" in prompt), (1, True, False))

    async def test_approved_call_beyond_the_limit_is_made_by_the_next_response(self) -> None:
        async with self.serving(record_text(DELETE_TWICE), record_text(HELLO), record_text(HELLO)) as client:
            made = await self.made(client, tools=[self.tool])
            requests = [one for one in made["output"] if one["type"] == "mcp_approval_request"]
            answers: list[dict[str, Any]] = [
                {"type": "mcp_approval_response", "approval_request_id": one["id"], "approve": True} for one in requests
            ]
            body: dict[str, Any] = {"tools": [self.tool], "max_tool_calls": 1}
            second = await self.made(client, previous_response_id=made["id"], input=answers, **body)
            self.assertEqual(self.calls(second), [(requests[0]["id"], "deleted a.txt")])
            self.assertEqual([one["text"] for one in second["output_problems"]], ['files.delete {"path":"b.txt"}'])
            self.assertIn("was not made yet", prompt_text(self.engine.requests[-1].prompt))
            third = await self.made(client, previous_response_id=second["id"], **body)
            self.assertEqual(self.calls(third), [(requests[1]["id"], "deleted b.txt")])
