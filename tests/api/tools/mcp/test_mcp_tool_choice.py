"""`tool_choice` with an MCP server that works, one that cannot be reached and one without tools, in each form of request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from django.test import AsyncClient, override_settings

from responses_app.protocol.reducer import fold
from tests.support.api.case import ApiCase, bare, record_text
from tests.support.mcp.raw_server import raw_mcp_server, reply
from tests.support.runs.server_tools import answer

FUNCTION = {"type": "function", "name": "pick", "parameters": {"type": "object", "properties": {}}}
CUSTOM = {"type": "custom", "name": "note"}
SERVER = {"type": "mcp", "server_label": "docs"}
# The working server has the tool `tool`.
TOOL, OTHER = {**SERVER, "name": "tool"}, {**SERVER, "name": "other"}
PICK = {"type": "function", "name": "pick"}
NOTE = {"type": "custom", "name": "note"}

# What a response ends with. Calls of the server end with a request for an approval.
ASKS, PICKS, NOTES, SAYS, FAILS = "mcp_approval_request", "function_call", "custom_tool_call", "message", "invalid_prompt"
TEXTS = {
    ASKS: "<|channel|>commentary to=functions.docs__tool <|constrain|>json<|message|>{}<|call|>",
    PICKS: "<|channel|>commentary to=functions.pick <|constrain|>json<|message|>{}<|call|>",
    NOTES: '<|channel|>commentary to=functions.note <|constrain|>json<|message|>{"input": "a"}<|call|>',
    SAYS: answer("Hello."),
}
SERVERS = ("live", "dead", "empty")


def allowed(mode: str, *tools: dict[str, Any]) -> dict[str, Any]:
    return {"type": "allowed_tools", "mode": mode, "tools": list(tools)}


# Choice, tools beside the server, and the end with a server that works, and with the two others.
ROWS: list[tuple[Any, list[dict[str, Any]], str, str]] = [
    ("auto", [], ASKS, SAYS),
    ("none", [FUNCTION], SAYS, SAYS),
    ("required", [], ASKS, FAILS),
    ("required", [FUNCTION], PICKS, PICKS),
    (PICK, [FUNCTION], PICKS, PICKS),
    (SERVER, [FUNCTION], ASKS, FAILS),
    (TOOL, [FUNCTION], ASKS, FAILS),
    (OTHER, [FUNCTION], FAILS, FAILS),
    (allowed("auto", SERVER), [FUNCTION], ASKS, SAYS),
    (allowed("auto", OTHER), [FUNCTION], SAYS, SAYS),
    (allowed("auto", SERVER, PICK), [FUNCTION], ASKS, PICKS),
    (allowed("required", SERVER), [FUNCTION], ASKS, FAILS),
    (allowed("required", OTHER), [FUNCTION], FAILS, FAILS),
    (allowed("required", OTHER, TOOL), [FUNCTION], ASKS, FAILS),
    (allowed("required", OTHER, PICK), [FUNCTION], PICKS, PICKS),
    (allowed("required", SERVER, NOTE), [CUSTOM], NOTES, NOTES),
]
# Choices that the listing of the first response shows to be impossible; the server works, or has no tools.
KNOWN: list[tuple[str, Any]] = [
    ("live", OTHER),
    ("live", allowed("required", OTHER)),
    ("empty", "required"),
    ("empty", SERVER),
    ("empty", TOOL),
    ("empty", allowed("required", SERVER, OTHER)),
]
ABSENT: list[dict[str, Any]] = [
    {"type": "mcp", "server_label": "absent"},
    {"type": "function", "name": "absent"},
    {"type": "custom", "name": "absent"},
]


@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"localhost", "127.0.0.1"}))
class ToolChoiceTest(ApiCase):
    @asynccontextmanager
    async def server(self, kind: str) -> AsyncIterator[dict[str, Any]]:
        """Yield the tool for a server of the kind."""
        async with raw_mcp_server(reply(result={"content": []})) as raw:
            if kind == "empty":
                raw.results["tools/list"] = {"tools": []}
            # No program listens on port 1.
            yield {**SERVER, "server_url": "http://localhost:1/mcp" if kind == "dead" else raw.url()}

    async def in_background(self, client: AsyncClient, **body: Any) -> dict[str, Any]:
        """Return the end of a background response."""
        made = await self.made(client, background=True, **body)
        events = await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true"))
        got: dict[str, Any] = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
        self.assertEqual(events[-1]["response"], got)
        return got

    async def check(self, client: AsyncClient, end: str, **body: Any) -> None:
        """Check the end of a request as JSON, as a stream and in the background."""
        events = await self.stream(client, **body)
        streamed = events[-1]["response"]
        self.assertEqual(fold(bare(events)), streamed)
        for made in (streamed, await self.in_background(client, **body)):
            if end == FAILS:
                self.assertEqual((made["status"], made["error"]["code"]), ("failed", "invalid_prompt"))
                self.assertEqual([item["type"] for item in made["output"]], ["mcp_list_tools"])
            else:
                self.assertEqual((made["status"], made["output"][-1]["type"]), ("completed", end), made["error"])
        if end == FAILS:
            self.refused(await self.post(client, **body), 400, "invalid_prompt", None)
        else:
            self.assertEqual((await self.made(client, **body))["output"][-1]["type"], end)

    @pytest.mark.slow
    async def test_each_choice_ends_as_the_tools_of_the_server_allow(self) -> None:
        for kind in SERVERS:
            ends = [live if kind == "live" else other for *_, live, other in ROWS]
            lines = [record_text(TEXTS[end]) for end in ends if end in TEXTS for _ in range(3)]
            async with self.server(kind) as tool, self.serving(*lines) as client:
                for (choice, others, _, _), end in zip(ROWS, ends, strict=True):
                    with self.subTest(kind=kind, choice=choice):
                        await self.check(client, end, tool_choice=choice, tools=[tool, *others])

    async def test_choice_that_the_known_listing_excludes_is_refused_before_anything_runs(self) -> None:
        for kind, choice in KNOWN:
            async with self.server(kind) as tool, self.serving(record_text(TEXTS[SAYS])) as client:
                first = await self.made(client, tools=[tool])
                for form in ({}, {"stream": True}, {"background": True}):
                    with self.subTest(kind=kind, choice=choice, form=form):
                        again = {"tools": [tool], "previous_response_id": first["id"], **form}
                        response = await self.post(client, tool_choice=choice, **again)
                        self.refused(response, 400, "invalid_value", "tool_choice")

    async def test_unknown_names_are_refused_before_anything_runs(self) -> None:
        choices = [choice for one in ABSENT for choice in (one, allowed("auto", one, PICK), allowed("required", one, PICK))]
        async with self.server("dead") as tool, self.serving() as client:
            for choice in [*choices, *({**SERVER, "name": "absent"}, allowed("auto", {**SERVER, "name": "absent"}))]:
                for form in ({}, {"stream": True}, {"background": True}):
                    with self.subTest(choice=choice, form=form):
                        tools = [{**tool, "allowed_tools": ["tool"]}, FUNCTION, CUSTOM]
                        response = await self.post(client, tool_choice=choice, tools=tools, **form)
                        self.refused(response, 400, "invalid_value", "tool_choice")

    async def test_message_names_the_listings_that_failed(self) -> None:
        reason = "Listing of 'docs': The MCP server cannot be reached."
        async with self.server("dead") as tool, self.serving() as client:
            for choice, message in (
                ("required", f"'tool_choice' requires a call, but the MCP servers offer no tool. {reason}"),
                (SERVER, f"The MCP servers do not offer what 'tool_choice' requires: 'docs'. {reason}"),
            ):
                response = await self.post(client, tool_choice=choice, tools=[tool])
                self.refused(response, 400, "invalid_prompt", None, message)
                ended = (await self.stream(client, tool_choice=choice, tools=[tool]))[-1]["response"]
                self.assertEqual(ended["error"]["message"], message)

    async def test_message_names_all_chosen_tools_of_the_server(self) -> None:
        async with self.server("empty") as tool, self.serving() as client:
            choice = allowed("required", TOOL, OTHER)
            response = await self.post(client, tool_choice=choice, tools=[tool])
            self.refused(response, 400, "invalid_prompt", None, "'docs.tool', 'docs.other'")
