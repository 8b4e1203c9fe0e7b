"""Server tools presented to chat models: functions, history, and the names of the client's tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.functions.as_functions import offered_names, to_functions
from responses_app.tools.registry import FUNCTIONS
from tests.support.dialects.parser_driver import WEATHER, chat, turn, user

ALL = tuple(FUNCTIONS.values())
CODE = {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1 + 1", "outputs": None}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "tides"}}
OPEN = {**SEARCH, "id": "ws_2", "action": {"type": "open_page", "url": "https://moon.example"}}
FIND = {**SEARCH, "id": "ws_3", "action": {"type": "find_in_page", "url": "https://moon.example", "pattern": "ebb"}}
FILES = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["ebb", "flood"], "results": None}


def rendered(*items: dict[str, Any], **how: Any) -> str:
    dialect = chat()
    return dialect.token_text(dialect.render(to_functions(turn(*items, **how))[0]))


def test_chat_models_are_offered_functions() -> None:
    text = rendered(user("?"), tools=ALL)
    assert [name for name in FUNCTIONS if f'"name": "{name}"' not in text] == []
    assert "recipient" not in text


@pytest.mark.parametrize("tools", [ALL, ()])
@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (CODE, "python", {"code": "1 + 1"}),
        (SEARCH, "web_search", {"query": "tides"}),
        (OPEN, "open_page", {"url": "https://moon.example"}),
        (FIND, "find_in_page", {"url": "https://moon.example", "pattern": "ebb"}),
        (FILES, "file_search", {"queries": ["ebb", "flood"]}),
        ({**FILES, "queries": ["ebb"]}, "file_search", {"query": "ebb"}),
    ],
)
def test_earlier_call_has_the_offered_name(item: dict[str, Any], name: str, arguments: dict[str, Any], tools: Any) -> None:
    shown = {**item, MODEL_OUTPUT: ModelOutput("For the model.")}
    call, output = to_functions(turn(user("?"), shown, tools=tools))[0].items[1:]
    assert (call["name"], json.loads(call["arguments"])) == (name, arguments)
    assert (output["call_id"], output["output"]) == (call["call_id"], "For the model.")
    assert f'"name": "{name}"' in rendered(user("?"), shown, tools=tools)


def test_names_of_the_client_include_namespaces_and_found_tools() -> None:
    space = {"type": "namespace", "name": "web", "tools": [{**WEATHER, "name": "search"}]}
    added = {"type": "additional_tools", "role": "developer", "tools": [{**WEATHER, "name": "python"}]}
    assert offered_names(turn(user("?"), added, tools=(WEATHER, space))) == {"get_weather", "web__search", "python"}


def test_call_of_a_server_tool_that_waits_for_approval_is_explained_until_it_is_made() -> None:
    request = {
        "type": "mcp_approval_request",
        "id": "mcpr_1",
        "server_label": "code interpreter",
        "name": "python",
        "arguments": '{"code": "1 + 1"}',
    }
    approved = {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}

    def names_and_outputs(*items: dict[str, Any]) -> list[str]:
        shown = to_functions(turn(user("?"), *items))[0].items[1:]
        return [str(item.get("name") or item.get("output")) for item in shown]

    assert names_and_outputs(request) == ["python", "This call was not made: the user has not approved it yet."]
    denied = {**approved, "approve": False, "reason": "Too slow."}
    assert names_and_outputs(request, denied) == ["python", "This call was not made: the user has denied it. Too slow."]
    made = {**CODE, MODEL_OUTPUT: ModelOutput("2")}
    assert names_and_outputs(request, approved, made) == ["python", "2"]
    # Each call belongs to one approval.
    assert names_and_outputs(made, request, approved)[1:] == [
        *("2", "python", "This call was not made yet, although the user has approved it.")
    ]
