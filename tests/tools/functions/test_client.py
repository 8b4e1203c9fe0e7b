"""Client tools (shell, patch, search): presented as functions, and mapped back for every grouping of tokens."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest

from responses_app.dialects.base import Turn
from responses_app.dialects.content import iter_images
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Arguments, Call, ClientCall, Delta, EndItem, TextDelta
from responses_app.tools.functions.as_functions import map_tool_calls, to_functions
from tests.support.dialects.call_events import ScriptedParser

DAY = date(2026, 1, 1)
NAMES = ("shell", "local_shell", "apply_patch", "tool_search", "computer_use_preview", "computer")
TOOLS: list[dict[str, Any]] = [{"type": name} for name in NAMES]
ACTIONS: list[dict[str, Any]] = [
    {"type": "click", "button": "left", "x": 1, "y": 2},
    {"type": "double_click", "x": 1, "y": 2},
    {"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]},
    {"type": "keypress", "keys": ["CTRL", "a"]},
    {"type": "move", "x": 1, "y": 2},
    {"type": "screenshot"},
    {"type": "scroll", "x": 1, "y": 2, "scroll_x": 0, "scroll_y": -9},
    {"type": "type", "text": "Hi"},
    {"type": "wait"},
]
LOCAL = {"type": "local"}
EXPECTED_ITEMS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "shell": (
        {"commands": ["ls", "pwd"], "timeout_ms": 9},
        "shell_call",
        {"action": {"commands": ["ls", "pwd"], "timeout_ms": 9, "max_output_length": None}, "environment": LOCAL},
    ),
    "local_shell": (
        {"command": ["ls", "-l"], "working_directory": "a"},
        "local_shell_call",
        {"action": {"type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": "a"}},
    ),
    "apply_patch": (
        {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b"},
        "apply_patch_call",
        {"operation": {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b"}},
    ),
    "tool_search": (
        {"query": "mail"},
        "tool_search_call",
        {"execution": "client", "arguments": {"query": "mail"}},
    ),
    "computer_use_preview": (
        {"action": ACTIONS[0]},
        "computer_call",
        {"action": ACTIONS[0], "pending_safety_checks": []},
    ),
    "computer": ({"actions": ACTIONS}, "computer_call", {"actions": ACTIONS, "pending_safety_checks": []}),
}


def map_deltas(*pieces: Delta) -> list[Delta]:
    """Return the deltas of a model with this output."""
    parser = map_tool_calls(ScriptedParser(list(pieces)), to_functions(Turn([], DAY, tools=TOOLS))[1])
    return [piece for _ in pieces for piece in parser.feed(Chunk())] + parser.finish()


def test_each_client_tool_is_a_function_of_its_name() -> None:
    converted, origins = to_functions(Turn([], DAY, tools=TOOLS, tool_choice={"type": "shell"}))
    assert [(tool["type"], tool["name"]) for tool in converted.tools] == [("function", name) for name in NAMES]
    assert all(tool["description"] and tool["parameters"]["required"] for tool in converted.tools)
    assert set(origins) == set(NAMES)
    assert converted.tool_choice == {"type": "function", "name": "shell"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("every", [1, 3, 1000])
def test_call_is_mapped_for_every_grouping(name: str, every: int) -> None:
    arguments, kind, body = EXPECTED_ITEMS[name]
    text = json.dumps(arguments)
    parts = [Arguments(text[at : at + every]) for at in range(0, len(text), every)]
    deltas = map_deltas(TextDelta("Well."), Call(name), *parts, EndItem(), TextDelta("Done."))
    assert [piece for piece in deltas if not isinstance(piece, EndItem)] == [
        TextDelta("Well."),
        ClientCall(kind, body),  # type: ignore[arg-type]
        TextDelta("Done."),
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", '{"commands": ["ls"'),
        ("shell", '{"commands": "ls"}'),
        ("shell", '{"commands": ["ls"], "timeout_ms": "soon"}'),
        ("local_shell", '{"command": [1]}'),
        ("apply_patch", '{"type": "rename_file", "path": "a", "diff": ""}'),
        ("apply_patch", '{"type": "create_file"}'),
        ("tool_search", "[]"),
        ("tool_search", ""),
        ("computer", '{"actions": []}'),
        ("computer", '{"actions": [{"type": "dance"}]}'),
        ("computer", '{"actions": [{"type": ["click"]}]}'),
        ("computer", '{"actions": [{"type": "wait", "x": 1}]}'),
        ("computer", '{"actions": [{"type": "move", "x": 1}]}'),
        ("computer", '{"actions": [{"type": "move", "x": 1, "y": true}]}'),
        ("computer", '{"actions": [{"type": "drag", "path": [{"x": 1}]}]}'),
        ("computer", '{"actions": [{"type": "click", "button": "top", "x": 1, "y": 2}]}'),
        ("computer_use_preview", '{"actions": []}'),
        ("shell", '{"commands": ["ls"], "timeout_ms": 99999999999999999999}'),
        ("tool_search", '{"query": 99999999999999999999}'),
        ("tool_search", '{"query": ' + "[" * 300 + "]" * 300 + "}"),
    ],
)
def test_arguments_of_another_shape_stay_a_function_call(name: str, arguments: str) -> None:
    deltas = map_deltas(Call(name), *map(Arguments, arguments))
    assert deltas[0] == Call(name)
    assert "".join(piece.text for piece in deltas[1:] if isinstance(piece, Arguments)) == arguments


def test_calls_that_follow_each_other_stay_apart() -> None:
    calls: list[Delta] = []
    for name in NAMES:
        calls += [Call(name), Arguments(json.dumps(EXPECTED_ITEMS[name][0]))]
    deltas = map_deltas(*calls)
    assert deltas == [ClientCall(kind, body) for _, kind, body in EXPECTED_ITEMS.values()]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_earlier_calls_are_rendered_as_generated(name: str) -> None:
    arguments, kind, body = EXPECTED_ITEMS[name]
    item = {"type": kind, "id": "x_1", "call_id": "call_1", "status": "completed", **body}
    converted = to_functions(Turn([item], DAY, tools=TOOLS))[0].items[0]
    assert (converted["type"], converted["name"], converted["call_id"]) == ("function_call", name, "call_1")
    assert json.loads(converted["arguments"]) == arguments


def test_outputs_are_rendered_as_text() -> None:
    ran = {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    late = {"stdout": "", "stderr": "b", "outcome": {"type": "timeout"}}
    outputs: list[dict[str, Any]] = [
        {"type": "shell_call_output", "output": [ran, late]},
        {"type": "local_shell_call_output", "output": "plain"},
        {"type": "apply_patch_call_output", "status": "failed"},
        {"type": "apply_patch_call_output", "status": "completed", "output": "1 file"},
    ]
    items = [{"id": f"o_{n}", "call_id": f"call_{n}", **one} for n, one in enumerate(outputs)]
    converted = [item["output"] for item in to_functions(Turn(items, DAY, tools=TOOLS))[0].items]
    assert json.loads(converted[0]) == [
        {"stdout": "a", "stderr": "", "exit_code": 0},
        {"stdout": "", "stderr": "b", "timed_out": True},
    ]
    assert converted[1:] == ["plain", "failed", "1 file"]


def test_the_screen_of_a_computer_is_an_image_that_a_function_returned() -> None:
    item = {
        "type": "computer_call_output",
        "id": "cuo_1",
        "call_id": "c",
        "output": {"type": "computer_screenshot", "image_url": "x"},
    }
    turn = to_functions(Turn([item], DAY, tools=TOOLS))[0]
    assert turn.items[0]["output"] == [{"type": "input_image", "image_url": "x", "detail": "auto"}]
    assert [image.path for image in iter_images([item])] == ["input[0].output"]
    assert [(image.item, image.url) for image in iter_images(turn.items)] == [("cuo_1", "x")]


def test_computer_use_preview_describes_the_screen_size() -> None:
    tool = {"type": "computer_use_preview", "display_width": 1024, "display_height": 768, "environment": "browser"}
    converted = to_functions(Turn([], DAY, tools=[tool]))[0].tools[0]
    assert "1024 by 768 pixels" in converted["description"]


def test_deferred_tool_is_offered_once_found() -> None:
    mail: dict[str, Any] = {"type": "function", "name": "send_mail", "parameters": {"type": "object"}, "defer_loading": True}
    crm: dict[str, Any] = {"type": "namespace", "name": "crm", "tools": [{**mail, "name": "find"}]}
    tools: list[dict[str, Any]] = [{"type": "tool_search"}, mail, crm]
    assert [tool["name"] for tool in to_functions(Turn([], DAY, tools=tools))[0].tools] == ["tool_search"]
    search_output = {"type": "tool_search_output", "id": "tso_1", "call_id": "call_1", "tools": [mail]}
    converted, origins = to_functions(Turn([search_output], DAY, tools=tools))
    assert [tool["name"] for tool in converted.tools] == ["tool_search", "send_mail"]
    assert json.loads(converted.items[0]["output"]) == {"tools": ["send_mail"]}
    assert "send_mail" not in origins
