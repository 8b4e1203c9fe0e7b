"""Calls whose arguments are not whole: cut by the token limit, or ended so by the model."""

from __future__ import annotations

from typing import Any

from responses_app.protocol.reducer import fold
from tests.support.api.case import HELLO, TOOL, bare, record_text, tokens
from tests.support.api.mcp_case import McpCase
from tests.support.runs.server_tools import shows

CUSTOM = {"type": "custom", "name": "note"}
# Type of the item -> function, the arguments so far, and the problems where the model ends the call.
CALLS: dict[str, tuple[str, str, list[str]]] = {
    "function_call": ("get_weather", '{"city":"Os', ["invalid_tool_arguments"]),
    "custom_tool_call": ("note", '{"input":"Oslo is a city', []),
    "mcp_call": ("files__add", '{"a":1', []),
}


class CutCallTest(McpCase):
    def text(self, kind: str, end: str) -> str:
        function, arguments, _ = CALLS[kind]
        return f"<|channel|>commentary to=functions.{function} <|constrain|>json<|message|>{arguments}{end}"

    def setUp(self) -> None:
        super().setUp()
        self.tools = [TOOL, CUSTOM, {**self.tool, "require_approval": "never"}]

    async def test_call_that_the_token_limit_cuts_is_incomplete(self) -> None:
        async with self.serving(*(record_text(self.text(kind, "lo and more of the same")) for kind in CALLS)) as client:
            for kind in CALLS:
                with self.subTest(kind=kind):
                    limit = len(tokens(self.text(kind, "")))
                    events = await self.stream(client, tools=self.tools, max_output_tokens=limit)
                    made = events[-1]["response"]
                    self.assertEqual(
                        (made["status"], made["incomplete_details"]["reason"]), ("incomplete", "max_output_tokens")
                    )
                    self.assertEqual((made["output"][-1]["type"], made["output"][-1]["status"]), (kind, "incomplete"))
                    self.assertEqual(fold(bare(events)), made)

    async def test_call_of_the_client_that_the_model_ends_is_completed_with_a_problem(self) -> None:
        kinds = ("function_call", "custom_tool_call")
        async with self.serving(*(record_text(self.text(kind, "<|call|>")) for kind in kinds)) as client:
            for kind in kinds:
                with self.subTest(kind=kind):
                    made = await self.made(client, tools=self.tools)
                    call: dict[str, Any] = made["output"][-1]
                    self.assertEqual((made["status"], call["type"], call["status"]), ("completed", kind, "completed"))
                    self.assertEqual([one["type"] for one in made.get("output_problems", ())], CALLS[kind][2])

    async def test_call_of_the_server_that_the_model_ends_is_told_to_the_model(self) -> None:
        answer = record_text(HELLO, match=shows("The arguments are not valid JSON"))
        async with self.serving(record_text(self.text("mcp_call", "<|call|>")), answer) as client:
            made = await self.made(client, tools=self.tools)
            listing, call, message = made["output"]
            self.assertEqual((made["status"], listing["type"], message["type"]), ("completed", "mcp_list_tools", "message"))
            self.assertEqual((call["status"], call["error"]["code"]), ("failed", -32602))
