"""The log as an MCP server, read with the client of the official SDK from a whole `bin/serve`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent, Tool

from responses_app.mcp_server.transport import MAX_RESULT_CHARS, bound_text
from tests.support import plain_http
from tests.support.api.case import ApiCase
from tests.support.server.serve_command import Server

TOOLS = {"find_responses", "read_response", "read_events", "read_prompt", "compare_responses"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tape: str) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("log") / "data", "--engine", tape, RESPONSES_LOG_MCP="1") as started:
        yield started.ready()


@asynccontextmanager
async def client(server: Server, key: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {key}"}
    async with (
        plain_http.async_client(headers=headers, timeout=30, trust_env=False) as http,
        Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as opened,
    ):
        yield opened


def call(server: Server, name: str, key: str = "", **arguments: Any) -> Any:
    """Call a tool and return the result as JSON, or the text of the error."""

    async def exchange() -> CallToolResult:
        async with client(server, key or server.key) as opened:
            return await opened.call_tool(name, arguments)

    result = asyncio.run(exchange())
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text if result.is_error else json.loads(content.text)


def test_tools_are_read_only_and_described(server: Server) -> None:
    async def listing() -> list[Tool]:
        async with client(server, server.key) as opened:
            return (await opened.list_tools()).tools

    tools = asyncio.run(listing())
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.annotations and tool.annotations.read_only_hint and tool.description for tool in tools)


def test_long_messages_are_refused(server: Server) -> None:
    headers = {"Authorization": f"Bearer {server.key}", "Accept": "application/json, text/event-stream"}
    statuses = []
    for text in ("word", "word " * 14_000):
        params = {"name": "find_responses", "arguments": {"text": text}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        statuses.append(plain_http.post(f"{server.url}/mcp", json=message, headers=headers).status_code)
    assert statuses == [200, 413]


def test_a_response_is_found_read_and_compared(server: Server) -> None:
    first, second = (server.ask(input=text, instructions=text).json() for text in ("Hello quokka", "Hello wombat"))
    listed = call(server, "find_responses", text="quokka")
    assert [(row["id"], row["status"], row["input"]) for row in listed["responses"]] == [
        (first["id"], "completed", "Hello quokka")
    ]
    assert (call(server, "find_responses", status="failed"))["responses"] == []
    page = call(server, "find_responses", limit=1)
    assert (page["responses"][0]["id"], page["more"]) == (second["id"], True)
    page = call(server, "find_responses", limit=1, after=second["id"])
    assert page["responses"][0]["id"] == first["id"]

    read = call(server, "read_response", id=first["id"])
    assert (read["output"], read["usage"]) == (first["output"], first["usage"])
    assert (call(server, "read_response", id=first["id"], first_item=1))["output"] == first["output"][1:]

    events = call(server, "read_events", id=first["id"], limit=1)
    assert (events["events"][0]["event"]["type"], events["more"]) == ("response.created", True)
    events = call(server, "read_events", id=first["id"], after=events["next_after"], types=["response.completed"])
    assert [event["event"]["response"]["id"] for event in events["events"]] == [first["id"]]

    prompt = call(server, "read_prompt", id=first["id"])
    assert "Hello quokka" in prompt["prompt_text"]
    assert prompt["rounds"][0]["tokens"] == first["usage"]["input_tokens"] == prompt["prompt_tokens"]

    compared = call(server, "compare_responses", first=first["id"], second=second["id"])
    assert [change[0] for change in compared["differences"]["request"]] == ["instructions", "input"]
    assert compared["prefix_cache"]["changes"][0]["text"] == "instructions changed."


@pytest.mark.parametrize(
    ("name", "arguments", "problem"),
    [
        ("read_response", {"id": "resp_none"}, "Response with id 'resp_none' not found."),
        ("read_response", {"id": "\0"}, "not found"),
        ("read_response", {}, "id: Field required"),
        ("find_responses", {"limit": 1000}, "limit: "),
        ("find_responses", {"after": "resp_none"}, "No response found"),
        ("find_responses", {"delete": True}, "delete: "),
        ("erase", {}, "Unknown tool: erase"),
    ],
)
def test_mistakes_are_errors_of_the_tool(server: Server, name: str, arguments: dict[str, Any], problem: str) -> None:
    assert problem in call(server, name, **arguments)


def test_a_key_reads_its_own_project_alone(server: Server) -> None:
    made = server.ask(input="Secret numbat").json()
    other = server.manage("createkey", "other")
    key = next(word for word in other.split() if word.startswith("sk-"))
    assert "not found" in call(server, "read_response", key, id=made["id"])
    assert (call(server, "find_responses", key, text="numbat"))["responses"] == []


def test_only_post_with_a_key_is_answered(server: Server) -> None:
    with plain_http.client(base_url=server.url, trust_env=False) as http:
        assert http.post("/mcp", json={}).status_code == 401
        headers = {"Authorization": f"Bearer {server.key}"}
        assert http.get("/mcp", headers=headers).status_code == 405
        assert http.post("/mcp", content=b"{", headers=headers).status_code in (400, 406)


@pytest.mark.parametrize("value", [{"a": "x" * 10**6}, {"a": ["x" * 3000] * 100}, {"a": ["x"] * 10**5}])
def test_results_are_bounded(value: Any) -> None:
    assert len(bound_text(value)) <= MAX_RESULT_CHARS + 100


class LogServerOffTest(ApiCase):
    async def test_the_server_is_off_by_default(self) -> None:
        async with self.serving() as http:
            self.refused(
                await http.post("/mcp", b"{}", content_type="application/json"), 404, None, None, "RESPONSES_LOG_MCP=1"
            )
