"""`bin/serve --demo-tools`: the example MCP server with several web processes. With a single process: tests/contract/test_demo_tools.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from openai_harmony import load_harmony_encoding

from responses_app.server.cli.args import Options
from responses_app.server.cli.banner import DEMO_QUESTION, banner
from tests.support.server.serve_command import Server

CALL = '<|channel|>commentary to=functions.demo__get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>'
ANSWER = "<|channel|>final<|message|>It is sunny in Paris.<|return|>"
TOOL = {"type": "mcp", "server_label": "demo", "require_approval": "never"}


@pytest.fixture
def call_tape(tmp_path: Path) -> str:
    """Write a tape with a call of the demo tool and an answer. Return the URL of the engine."""
    encoding = load_harmony_encoding("HarmonyGptOss")
    recordings = [{"chunks": [{"tokens": encoding.encode(text, allowed_special="all")}]} for text in (CALL, ANSWER)]
    path = tmp_path / "tape.jsonl"
    path.write_text("\n".join(map(json.dumps, recordings)) + "\n")
    return f"script://{path}"


def test_demo_tool_is_called_and_its_result_is_in_the_response(tmp_path: Path, call_tape: str) -> None:
    with Server(tmp_path / "data", "--engine", call_tape, "--demo-tools", "--web", "2") as server:
        assert DEMO_QUESTION in server.ready().output
        body: dict[str, Any] = server.ask(input=DEMO_QUESTION, tools=[TOOL]).json()
    assert [item["type"] for item in body["output"]] == ["mcp_list_tools", "mcp_call", "message"]
    listed, call, _ = body["output"]
    assert {tool["name"]: (tool.get("annotations") or {}).get("readOnlyHint") for tool in listed["tools"]} == {
        "get_weather": True,
        "add": True,
        "delete_file": None,
    }
    assert (call["error"], json.loads(call["output"])["weather"]) == (None, "sunny")


def test_banner_names_the_demo_tools_only_with_the_option() -> None:
    assert DEMO_QUESTION not in banner(Options(), ["m"])
    assert DEMO_QUESTION in banner(Options(demo_tools=True), ["m"])
