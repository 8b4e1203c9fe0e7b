"""Input items of tools that another server ran: searches, code, pictures, MCP calls; stored whole and shown to the model."""

from __future__ import annotations

from typing import Any

import orjson
from openai.types.responses import ResponseOutputItem
from pydantic import TypeAdapter

from tests.support.api.case import HELLO, TOOL, ApiCase, record_text

ASKED = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "crm", "name": "erase", "arguments": '{"n":1}'}
DENIED = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": False, "reason": "Too risky."}
MCP_CALL = {
    "type": "mcp_call",
    "id": "mcp_1",
    "server_label": "my crm",
    "name": "find",
    "arguments": '{"who":"Ada"}',
    "status": "completed",
}
# What each item makes the model read.
ITEMS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "web_search_call": (
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "tides", "sources": [{"type": "url", "url": "https://moon.example"}]},
        },
        ("functions.web_search", '"query": "tides"', "https://moon.example"),
    ),
    "file_search_call": (
        {
            "type": "file_search_call",
            "id": "fs_1",
            "status": "completed",
            "queries": ["tides"],
            "results": [{"file_id": "f1", "filename": "moon.txt", "score": 0.5, "text": "It pulls."}],
        },
        ("functions.file_search", "It pulls."),
    ),
    "code_interpreter_call": (
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "container_id": "cntr_1",
            "code": "print(6*7)",
            "outputs": [{"type": "logs", "logs": "forty-two"}, {"type": "image", "url": "data:image/png;base64,SECRETBLOB"}],
        },
        ("functions.python", "print(6*7)", "forty-two"),
    ),
    "image_generation_call": (
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "result": "SECRETBLOB",
            "revised_prompt": "a red barn",
        },
        ("functions.image_generation", "a red barn"),
    ),
    "mcp_list_tools": (
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "crm", "tools": [{"name": "find", "input_schema": {}}]},
        (),
    ),
    "mcp_call": (
        {**MCP_CALL, "output": "Ada Lovelace"},
        ("functions.my_crm__find", '{"who":"Ada"}', "Ada Lovelace"),
    ),
    "a failed mcp_call": (
        {
            **MCP_CALL,
            "id": "mcp_2",
            "status": "failed",
            "error": {"type": "mcp_tool_execution_error", "content": "no such person"},
        },
        ("no such person",),
    ),
    "mcp_approval_request": (ASKED, ("functions.crm__erase", "has not approved it yet")),
}
PROGRAM = [
    {"type": "program", "id": "prog_1", "call_id": "call_p", "code": "await tools.f()", "fingerprint": "x"},
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_f",
        "name": "f",
        "arguments": "{}",
        "caller": {"type": "program", "caller_id": "call_p"},
    },
    {"type": "function_call_output", "call_id": "call_f", "output": "3"},
    {"type": "program_output", "id": "po_1", "call_id": "call_p", "result": "three", "status": "completed"},
]
FOUND: list[dict[str, Any]] = [
    {"type": "tool_search_call", "id": "tsc_1", "execution": "server", "arguments": {"paths": ["mail"]}, "status": "completed"},
    {"type": "tool_search_output", "id": "tso_1", "execution": "server", "tools": [TOOL], "status": "completed"},
]
MORE = {"role": "user", "content": "Go on."}


class ServerItemsTest(ApiCase):
    """With a scripted engine in harmony."""

    def prompt(self) -> str:
        return self.dialect.token_text(self.engine.requests[-1].prompt)

    async def stored_items(self, client: Any, uid: str) -> list[dict[str, Any]]:
        page = orjson.loads((await client.get(f"/v1/responses/{uid}/input_items?order=asc")).content)
        return [{key: value for key, value in item.items() if value is not None} for item in page["data"]]

    async def test_each_is_kept_as_it_was_and_told_as_a_call_with_its_output(self) -> None:
        async with self.serving(*[record_text(HELLO)] * len(ITEMS)) as client:
            for name, (item, texts) in ITEMS.items():
                with self.subTest(name):
                    TypeAdapter[Any](ResponseOutputItem).validate_python(item)
                    made = await self.made(client, input=[item, MORE])
                    self.assertEqual((await self.stored_items(client, made["id"]))[0], item)
                    for text in texts:
                        self.assertIn(text, self.prompt())
                    self.assertNotIn("SECRETBLOB", self.prompt())

    async def test_the_next_turn_and_a_conversation_tell_them_again(self) -> None:
        item, texts = ITEMS["mcp_call"]
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first = await self.made(client, input=[item, MORE])
            await self.made(client, previous_response_id=first["id"])
            self.assertIn(texts[-1], self.prompt())
            thread = orjson.loads(
                (
                    await client.post(
                        "/v1/conversations", orjson.dumps({"items": [{**item, "id": None}]}), content_type="application/json"
                    )
                ).content
            )
            await self.made(client, conversation=thread["id"])
            self.assertIn(texts[-1], self.prompt())

    async def test_a_denied_call_is_told_and_one_that_was_made_needs_no_request(self) -> None:
        approved = {**DENIED, "approve": True, "reason": None}
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            await self.made(client, input=[ASKED, DENIED])
            self.assertIn("the user has denied it. Too risky.", self.prompt())
            await self.made(
                client, input=[ASKED, approved, {**MCP_CALL, "approval_request_id": "mcpr_1", "output": "erased"}, MORE]
            )
            self.assertIn("erased", self.prompt())
            self.assertNotIn("approved it yet", self.prompt())

    async def test_items_that_need_server_tools_are_refused(self) -> None:
        async with self.serving() as client:
            for items, text in (
                ([DENIED], "No approval request found with id mcpr_1."),
                ([PROGRAM[0], MORE], "No tool output found for function call call_p."),
                ([FOUND[1], MORE], "No tool call found"),
            ):
                with self.subTest(items=items):
                    self.refused(await self.post(client, input=items), 400, None, "input", text)

    async def test_a_program_and_what_it_called_are_told(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client, input=[*PROGRAM, MORE])
            self.assertIn("await tools.f()", self.prompt())
            self.assertIn("three", self.prompt())

    async def test_tools_that_a_server_found_are_offered(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, input=[*FOUND, MORE])
            self.assertIn("type get_weather", self.prompt())
            self.assertEqual(
                [item["type"] for item in await self.stored_items(client, made["id"])][:2], [one["type"] for one in FOUND]
            )

    async def test_an_oddity_is_named_by_its_path(self) -> None:
        async with self.serving() as client:
            for item, code, param in (
                ({"type": "mcp_call", "name": "f", "arguments": "{}"}, "missing_required_parameter", "input[0].server_label"),
                ({**ASKED, "arguments": {}}, "invalid_type", "input[0].arguments"),
                ({**ITEMS["web_search_call"][0], "status": "odd"}, "invalid_value", "input[0].status"),
                ({**ITEMS["web_search_call"][0], "action": {"queries": 7}}, "invalid_type", "input[0].action.queries"),
                ({**ITEMS["file_search_call"][0], "zzz": 1}, "unknown_parameter", "input[0].zzz"),
                ({**FOUND[0], "execution": "client"}, "missing_required_parameter", "input[0].call_id"),
            ):
                with self.subTest(item=item):
                    self.refused(await self.post(client, input=[item, MORE]), 400, code, param)

    async def test_web_search_with_an_odd_action_is_shown(self) -> None:
        item = {**ITEMS["web_search_call"][0], "action": {"type": [{"url": "u"}], "query": "tides"}}
        async with self.serving(record_text(HELLO)) as client:
            await self.made(client, input=[item, MORE])
            self.assertIn("functions.web_search", self.prompt())
