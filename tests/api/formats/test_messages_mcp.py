"""MCP servers in Messages: toolsets of the beta `mcp-client-2025-11-20`, and the older `tool_configuration`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from django.test import override_settings

from tests.support.api.case import record_text
from tests.support.api_formats import anthropic_types
from tests.support.api_formats.messages_case import PATH, MessagesCase
from tests.support.runs.server_tools import answer, shows

CALL = '<|channel|>commentary to=functions.tests__weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>'
FAIL = '<|channel|>commentary to=functions.tests__fail <|constrain|>json<|message|>{"reason": "x"}<|call|>'
DELETE = "Delete a file of the server"
WEATHER = "Get the weather of a city"
SERVER = {"type": "url", "name": "tests", "url": "https://mcp.example.com/mcp"}
OTHER = {**SERVER, "name": "other"}


def toolset(name: str = "tests", **fields: Any) -> dict[str, Any]:
    return {"type": "mcp_toolset", "mcp_server_name": name, **fields}


def shows_only(*texts: str) -> Callable[[Any], bool]:
    """Return a condition of a prompt that has these descriptions of tools, and not the other ones."""
    return lambda prompt: all(shows(text)(prompt) == (text in texts) for text in (WEATHER, DELETE))


@override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"127.0.0.1"}))
@pytest.mark.usefixtures("class_url")
class McpToolsetTest(MessagesCase):
    """Requests with the MCP server of the tests."""

    url: str

    @pytest.fixture(autouse=True)
    def class_url(self, mcp_url: str) -> None:
        type(self).url = mcp_url

    async def test_a_tool_of_a_toolset_is_called(self) -> None:
        then = record_text(answer("Warm."), match=shows("It is warm in Oslo."))
        async with self.serving(record_text(CALL, match=shows_only(WEATHER, DELETE)), then) as client:
            servers = [{**SERVER, "url": self.url, "authorization_token": "secret"}]
            tools = [toolset(cache_control={"type": "ephemeral"}, default_config={"defer_loading": True})]
            response = await self.send(client, mcp_servers=servers, tools=tools)
            self.assertEqual(response.status_code, 200, response.content)
            anthropic_types.validate("Message", response.content, beta=True)
            use, result, text = orjson.loads(response.content)["content"]
            self.assertEqual((use["type"], use["name"], use["server_name"]), ("mcp_tool_use", "weather", "tests"))
            self.assertEqual((result["is_error"], result["content"][0]["text"]), (False, "It is warm in Oslo."))
            self.assertEqual(text["text"], "Warm.")

    @pytest.mark.slow
    async def test_a_failed_call_shows_the_texts_of_the_tool(self) -> None:
        cases: list[tuple[str, dict[str, Any], str]] = [
            (FAIL, {}, "Error executing tool fail"),
            (CALL, {"configs": {"add": {"enabled": True}}, "default_config": {"enabled": False}}, "has no tool 'weather'"),
        ]
        lines = [record_text(text) for call, _, _ in cases for text in (call, answer("Sorry."))]
        async with self.serving(*lines) as client:
            for _, fields, text in cases:
                body: dict[str, Any] = {"mcp_servers": [{**SERVER, "url": self.url}], "tools": [toolset(**fields)]}
                made = orjson.loads((await self.send(client, **body)).content)
                result = made["content"][1]
                self.assertTrue(result["is_error"])
                self.assertIn(text, result["content"][0]["text"])
                self.assertNotIn("{", result["content"][0]["text"])

    async def test_enabled_tools_are_offered(self) -> None:
        enabled = {"enabled": True}
        cases: list[tuple[dict[str, Any], tuple[str, ...]]] = [
            ({"configs": {"delete": enabled}}, (WEATHER, DELETE)),
            ({"default_config": {"enabled": True}, "configs": None}, (WEATHER, DELETE)),
            ({"default_config": {"enabled": False}, "configs": {"weather": enabled, "delete": {}}}, (WEATHER,)),
            ({"default_config": {"enabled": False}}, ()),
        ]
        lines = [record_text(answer("Hello."), match=shows_only(*offered)) for _, offered in cases]
        async with self.serving(*lines) as client:
            for fields, _ in cases:
                with self.subTest(fields=fields):
                    body = {"mcp_servers": [{**SERVER, "url": self.url}], "tools": [toolset(**fields)]}
                    self.assertEqual((await self.message(client, **body))["content"][0]["text"], "Hello.")

    async def test_the_older_form_is_accepted(self) -> None:
        async with self.serving(record_text(answer("Hello."), match=shows_only(WEATHER))) as client:
            server = {**SERVER, "url": self.url, "tool_configuration": {"enabled": True, "allowed_tools": ["weather"]}}
            self.assertEqual((await self.message(client, mcp_servers=[server]))["content"][0]["text"], "Hello.")

    async def test_a_server_that_cannot_be_reached_fails_the_message(self) -> None:
        body: dict[str, Any] = {"mcp_servers": [{**SERVER, "url": "http://127.0.0.1:1/mcp"}], "tools": [toolset()]}
        text = "Connection error while communicating with MCP server 'tests': The MCP server cannot be reached."
        error = {"type": "invalid_request_error", "message": text}
        async with self.serving() as client:
            for path in (PATH, f"{PATH}/count_tokens"):
                response = await self.send(client, path, **body)
                self.assertEqual((response.status_code, orjson.loads(response.content)["error"]), (400, error))
            response = await self.send(client, stream=True, **body)
            self.assertEqual(response.status_code, 200)
            parts = [part async for part in response.streaming_content]
            events = [orjson.loads(block.partition(b"\ndata: ")[2]) for block in b"".join(parts).split(b"\n\n")[:-1]]
            self.assertEqual([event["type"] for event in events], ["message_start", "error"])
            self.assertEqual(events[-1]["error"], error)

    async def test_errors_name_the_path(self) -> None:
        servers = [SERVER, OTHER]
        denied = toolset(configs={"delete": {"enabled": False}})
        cases: list[tuple[list[Any], list[Any], str]] = [
            ([], [toolset()], "Invalid 'tools[0].mcp_server_name': 'mcp_servers' has no server with the name 'tests'."),
            ([SERVER], [{"type": "mcp_toolset"}], "Missing required parameter: 'tools[0].mcp_server_name'."),
            ([SERVER], [toolset(), toolset("other")], "'tools[1].mcp_server_name'"),
            (
                [SERVER],
                [toolset(), toolset()],
                "Invalid 'tools[1].mcp_server_name': the server has the toolset 'tools[0]' already.",
            ),
            (servers, [toolset()], "Invalid 'mcp_servers[1].name': no 'mcp_toolset' of 'tools' has this 'mcp_server_name'."),
            ([SERVER], [denied], "Invalid 'tools[0].configs.delete.enabled': this server cannot leave out single tools."),
            ([SERVER], [toolset(configs={"a": {"enabled": 1}})], "'tools[0].configs.a.enabled'"),
            ([SERVER], [toolset(configs={"": {}})], "Invalid 'tools[0].configs': key too short. Expected minimum length 1"),
            ([SERVER], [toolset(tools=[])], "Unknown parameter: 'tools[0].tools'."),
            ([{**SERVER, "tool_configuration": {}}], [toolset()], "Invalid 'mcp_servers[0].tool_configuration'"),
            ([{**SERVER, "url": "http://x"}], [toolset()], "'mcp_servers[0].url'"),
        ]
        async with self.serving() as client:
            for mcp_servers, tools, message in cases:
                with self.subTest(message=message):
                    response = await self.send(client, mcp_servers=mcp_servers, tools=tools)
                    self.assertEqual(response.status_code, 400, response.content)
                    self.assertIn(message, orjson.loads(response.content)["error"]["message"])
