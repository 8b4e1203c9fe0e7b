"""`tool_choice` with MCP servers that cannot be reached, and with names that no server has."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import override_settings

from responses_app.protocol.reducer import fold
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.tools.mcp import sessions
from tests.support.api.case import bare, record_text
from tests.support.runs.server_tools import RoundsCase, answer

# No program listens on port 1.
DEAD = {"type": "mcp", "server_label": "dead", "server_url": "http://localhost:1/mcp", "require_approval": "never"}
FUNCTION = {"type": "function", "name": "pick", "parameters": {"type": "object", "properties": {}}}
CUSTOM = {"type": "custom", "name": "note"}
MCP = {"type": "mcp", "server_label": "dead"}
PICK = {"type": "function", "name": "pick"}
NOTE = {"type": "custom", "name": "note"}
CALL_PICK = "<|channel|>commentary to=functions.pick <|constrain|>json<|message|>{}<|call|>"
CALL_NOTE = '<|channel|>commentary to=functions.note <|constrain|>json<|message|>{"input": "a"}<|call|>'


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"localhost"}))
class DeadServerTest(RoundsCase):
    def setUp(self) -> None:
        super().setUp()
        sessions.clear_cache()

    def new_hub(self) -> RunManager:
        return RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})

    async def test_choice_of_the_dead_server_alone_fails_as_invalid_prompt(self) -> None:
        cases: list[tuple[Any, list[dict[str, Any]]]] = [
            ("required", [DEAD]),
            (MCP, [DEAD, FUNCTION]),
            ({**MCP, "name": "look"}, [DEAD, FUNCTION]),
            (allowed("required", MCP), [DEAD, FUNCTION]),
            (allowed("required", {**MCP, "name": "look"}), [DEAD, FUNCTION]),
        ]
        async with self.serving() as client:
            for choice, tools in cases:
                with self.subTest(choice=choice):
                    events = await self.stream(client, tool_choice=choice, tools=tools)
                    last = events[-1]["response"]
                    self.assertEqual((last["status"], last["error"]["code"]), ("failed", "invalid_prompt"))
                    self.assertEqual([item["type"] for item in last["output"]], ["mcp_list_tools"])
                    self.assertEqual(fold(bare(events)), last)
                    self.refused(await self.post(client, tool_choice=choice, tools=tools), 400, "invalid_prompt", None)

    async def test_another_tool_is_called_in_place_of_the_dead_server(self) -> None:
        cases: list[tuple[Any, str]] = [
            ("required", CALL_PICK),
            (PICK, CALL_PICK),
            (NOTE, CALL_NOTE),
            (allowed("required", MCP, PICK), CALL_PICK),
            (allowed("required", MCP, NOTE), CALL_NOTE),
            (allowed("auto", MCP, PICK), CALL_PICK),
        ]
        async with self.serving(*(record_text(text) for _, text in cases)) as client:
            for choice, _ in cases:
                with self.subTest(choice=choice):
                    made = await self.made(client, tool_choice=choice, tools=[DEAD, FUNCTION, CUSTOM])
                    self.assertEqual(made["status"], "completed", made["error"])
                    self.assertEqual(made["output"][-1]["type"].removesuffix("_tool_call").removesuffix("_call"), _kind(choice))

    async def test_allowed_tools_with_auto_leave_the_dead_server_out(self) -> None:
        cases = [allowed("auto", MCP), allowed("auto", {**MCP, "name": "look"}), "auto", "none"]
        async with self.serving(*[record_text(answer("Hello."))] * len(cases)) as client:
            for choice in cases:
                with self.subTest(choice=choice):
                    made = await self.made(client, tool_choice=choice, tools=[DEAD, FUNCTION])
                    self.assertEqual((made["status"], made["output"][-1]["type"]), ("completed", "message"))

    async def test_unknown_names_are_refused_before_anything_runs(self) -> None:
        absent: list[dict[str, Any]] = [
            {"type": "mcp", "server_label": "other"},
            {"type": "function", "name": "other"},
            {"type": "custom", "name": "other"},
        ]
        choices = [choice for one in absent for choice in (one, allowed("auto", one, PICK), allowed("required", one, PICK))]
        async with self.serving() as client:
            for choice in choices:
                with self.subTest(choice=choice):
                    response = await self.post(client, tool_choice=choice, tools=[DEAD, FUNCTION, CUSTOM])
                    self.refused(response, 400, "invalid_value", "tool_choice")
                    self.assertEqual(orjson.loads(response.content)["error"]["type"], "invalid_request_error")


def _kind(choice: Any) -> str:
    """Return the kind of the tool that `choice` leaves."""
    named = choice["tools"][-1] if isinstance(choice, dict) and "tools" in choice else choice
    return "function" if isinstance(named, str) else str(named["type"])
