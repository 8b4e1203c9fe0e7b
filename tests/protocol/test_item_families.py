"""One canonical stream per family of items: which events, in which order, and what opens and ends."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from responses_app.protocol.conformance import validate
from responses_app.protocol.deltas import (
    Arguments,
    Call,
    Delta,
    EndItem,
    McpCall,
    McpList,
    McpTools,
)
from tests.support.protocol.item_families import EXEC, FAMILIES
from tests.support.protocol.response_strategies import (
    COMPUTER,
    ENDINGS,
    FOUND,
    PATCH,
    SEARCHED,
    TOOL,
    TOOL_ERROR,
    items,
    kinds,
    write_response,
)

families = pytest.mark.parametrize("name", FAMILIES)
_adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@families
def test_family_emits_its_events_in_order(name: str) -> None:
    pieces, inner, status = FAMILIES[name]
    events, _ = write_response(pieces)
    assert kinds(events) == ["output_item.added", *inner.split(), "output_item.done"]
    assert items(events)[0].get("status") == status
    assert validate(events) == []


@families
def test_item_opens_empty(name: str) -> None:
    """An item opens with the initial payload of its family."""
    pieces, _, _ = FAMILIES[name]
    opened = write_response(pieces)[0][2]["item"]
    blank = {
        "message": {"role": "assistant", "status": "in_progress", "content": []},
        "reasoning": {"status": "in_progress", "summary": [], "content": []},
        "function_call": {"status": "in_progress", "name": "f", "call_id": "call_1", "arguments": ""},
        "custom_tool_call": {"status": "in_progress", "name": "f", "call_id": "call_1", "input": ""},
        "shell_call": {
            "status": "in_progress",
            "call_id": "call_1",
            "action": {key: [] if key == "commands" else None for key in opened.get("action", {})},
        },
        "local_shell_call": {"status": "in_progress", "call_id": "call_1", "action": EXEC},
        "apply_patch_call": {"status": "in_progress", "call_id": "call_1", **PATCH.body},
        "tool_search_call": {
            "status": "in_progress",
            "call_id": "call_1",
            "execution": "client",
            "arguments": {"query": "q"},
        },
        "computer_call": {"status": "in_progress", "call_id": "call_1", **COMPUTER.body},
        "mcp_list_tools": {"server_label": "m", "tools": []},
        "mcp_call": {
            "status": "in_progress",
            "approval_request_id": "mcpr_1" if "fails" in name else None,
            "server_label": "m",
            "name": "t",
            "arguments": "",
            "output": None,
            "error": None,
        },
        "mcp_approval_request": {"server_label": "m", "name": "t", "arguments": "{}"},
        "code_interpreter_call": {"status": "in_progress", "container_id": "c", "code": "", "outputs": None},
        "web_search_call": {"status": "in_progress", "action": {"type": "search", "query": ""}},
        "file_search_call": {"status": "in_progress", "queries": [], "results": None},
        "compaction": {"encrypted_content": "blob"},
    }
    assert {key: value for key, value in opened.items() if key not in ("id", "type")} == blank[opened["type"]]


def test_the_ids_of_every_family_have_their_prefix() -> None:
    """A3, F10."""
    prefixes = {
        item["type"]: item["id"].rstrip("0123456789")
        for pieces, _, _ in FAMILIES.values()
        for item in items(write_response(pieces)[0])
    }
    assert prefixes == {
        "message": "msg_",
        "reasoning": "rs_",
        "function_call": "fc_",
        "custom_tool_call": "ctc_",
        "shell_call": "sh_",
        "local_shell_call": "lsh_",
        "apply_patch_call": "apc_",
        "tool_search_call": "tsc_",
        "computer_call": "cu_",
        "mcp_list_tools": "mcpl_",
        "mcp_call": "mcp_",
        "mcp_approval_request": "mcpr_",
        "code_interpreter_call": "ci_",
        "web_search_call": "ws_",
        "file_search_call": "fs_",
        "compaction": "cmp_",
    }


def test_all_families_in_one_stream_are_valid_for_the_whole_union_of_the_official_client() -> None:
    pieces: list[Delta] = [piece for family_pieces, _, _ in FAMILIES.values() for piece in [*family_pieces, EndItem()]]
    events, _ = write_response(pieces)
    assert len(items(events)) == len(FAMILIES)
    assert [_adapter.validate_python(event).type for event in events] == [event["type"] for event in events]


def test_results_of_tools_are_told_when_the_item_is_done() -> None:
    names = ("mcp tools", "mcp call", "mcp call that fails", "file search", "web search", "code")
    calls = {name: items(write_response(FAMILIES[name][0])[0])[0] for name in names}
    assert calls["web search"]["action"] == SEARCHED
    assert calls["mcp tools"]["tools"] == [TOOL]
    assert calls["mcp call"]["output"] == "o"
    assert calls["mcp call that fails"]["error"] == TOOL_ERROR
    assert (calls["file search"]["queries"], calls["file search"]["results"]) == (["q"], [FOUND])
    assert calls["code"]["outputs"] == [{"type": "logs", "logs": "1"}]


def test_the_arguments_of_an_mcp_call_are_done_before_its_result_is_there() -> None:
    before = kinds(write_response([McpCall("m", "t"), Arguments("{}"), EndItem()], "cancel")[0])
    assert before[:4] == ["output_item.added", "mcp_call.in_progress", "mcp_call_arguments.delta", "mcp_call_arguments.done"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_patch_is_whole_however_the_response_ends(ending: str) -> None:
    """Its type knows `in_progress` and `completed`."""
    events, _ = write_response([PATCH], ending)
    assert [item["status"] for item in items(events)] == ["completed"]
    assert validate(events) == []


def test_a_listing_says_an_error_only_where_there_is_one() -> None:
    fine, failed = items(write_response([McpList("m"), McpTools([TOOL]), McpList("n"), McpTools(error="no")])[0])
    assert ("error" in fine, failed["error"]) == (False, "no")


def test_call_has_its_namespace() -> None:
    """F8: it round-trips, and is no key when there is none."""
    function, custom = items(write_response([Call("f", namespace="maps"), Call("g", "custom")])[0])
    assert (function["namespace"], "namespace" in custom) == ("maps", False)
