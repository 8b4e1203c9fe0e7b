"""Tools of the protocol that the client runs (shell, patch, search, computer), presented to models as functions.

Arguments of such a call are parsed when complete, because each item type has its own fields. Invalid arguments make the call a
function call.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import orjson

from responses_app.protocol.items.client_tools.client_call import ClientCallType
from responses_app.protocol.items.registry import FAMILIES
from responses_app.tools.functions import computer

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClientToolSpec:
    """Function of a client tool, and conversion of calls and outputs."""

    kind: ClientCallType
    description: str
    parameters: Json
    # Converts arguments to the item's fields, None if invalid; and an item's fields to arguments.
    body: Callable[[Json], dict[str, Any] | None]
    arguments: Callable[[Json], Json]


def _schema(required: Sequence[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_STRINGS: Final = {"type": "array", "items": {"type": "string"}}
# Milliseconds or bytes. Without a maximum a model may write numbers that no JSON of an event can hold.
_LIMIT: Final = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_OPERATIONS: Final = ("create_file", "update_file", "delete_file")


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_limit(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _shell(value: Json) -> dict[str, Any] | None:
    limits = {key: value.get(key) for key in ("timeout_ms", "max_output_length")}
    if not _is_string_list(value.get("commands")) or not all(map(_is_limit, limits.values())):
        return None
    return {"action": {"commands": value["commands"], **limits}, "environment": {"type": "local"}}


def _local_shell(value: Json) -> dict[str, Any] | None:
    # Omit missing values instead of sending null: the AI SDK rejects the whole response for a null.
    more = {key: value[key] for key in ("timeout_ms", "working_directory") if value.get(key) is not None}
    if not _is_string_list(value.get("command")) or not _is_limit(more.get("timeout_ms")):
        return None
    if not isinstance(more.get("working_directory", ""), str):
        return None
    return {"action": {"type": "exec", "command": value["command"], "env": {}, **more}}


def _apply_patch(value: Json) -> dict[str, Any] | None:
    kind, path, diff = value.get("type"), value.get("path"), value.get("diff", "")
    if kind not in _OPERATIONS or not isinstance(path, str) or not isinstance(diff, str):
        return None
    return {"operation": {"type": kind, "path": path, **({} if kind == "delete_file" else {"diff": diff})}}


def _tool_search(value: Json) -> dict[str, Any]:
    return {"execution": "client", "arguments": value}


def _action(item: Json) -> Json:
    kept_keys = ("commands", "command", "timeout_ms", "max_output_length", "working_directory")
    return {key: value for key, value in item["action"].items() if key in kept_keys and value is not None}


def _operation(item: Json) -> Json:
    return {"diff": "", **item["operation"]}


def _search_arguments(item: Json) -> Json:
    arguments = item["arguments"]
    return arguments if isinstance(arguments, Mapping) else {"query": arguments}


def is_hosted_search(tool: Json) -> bool:
    """Return True for a search of tools that the server would run. Deferred tools are offered from the start beside such a search."""
    return tool["type"] == "tool_search" and tool.get("execution") == "server"


CLIENT_TOOLS: Final[Mapping[str, ClientToolSpec]] = {
    "shell": ClientToolSpec(
        "shell_call",
        "Runs shell commands on the user's machine, all at the same time, and returns what each of them printed.",
        _schema(["commands"], commands=_STRINGS, timeout_ms=_LIMIT, max_output_length=_LIMIT),
        _shell,
        _action,
    ),
    "local_shell": ClientToolSpec(
        "local_shell_call",
        "Runs one command, given as its words, on the user's machine and returns what it printed.",
        _schema(["command"], command=_STRINGS, working_directory={"type": "string"}, timeout_ms=_LIMIT),
        _local_shell,
        _action,
    ),
    "apply_patch": ClientToolSpec(
        "apply_patch_call",
        "Creates, updates or deletes a file. `diff` is the content of the change in V4A format; it is empty to delete a file.",
        _schema(
            ["type", "path", "diff"],
            type={"type": "string", "enum": list(_OPERATIONS)},
            path={"type": "string"},
            diff={"type": "string"},
        ),
        _apply_patch,
        _operation,
    ),
    "tool_search": ClientToolSpec(
        "tool_search_call",
        "Searches for tools that are not listed here; those that are found can be called afterwards.",
        _schema(["query"], query={"type": "string"}),
        _tool_search,
        _search_arguments,
    ),
    "computer_use_preview": ClientToolSpec(
        "computer_call",
        "Does one thing with the mouse or the keyboard of the user's computer and returns a picture of its screen.",
        _schema(["action"], action=computer.ACTION),
        computer.action,
        computer.arguments,
    ),
    "computer": ClientToolSpec(
        "computer_call",
        "Uses the mouse and the keyboard of the user's computer, one action after the other, and returns a picture of its screen.",
        _schema(["actions"], actions={"type": "array", "minItems": 1, "items": computer.ACTION}),
        computer.actions,
        computer.arguments,
    ),
}
# Type of a call's item -> the tool, and type of its output -> the tool. A computer call may belong to either of two tools.
CALLS: Final[Mapping[str, str]] = {tool.kind: name for name, tool in CLIENT_TOOLS.items()}
OUTPUTS: Final[Mapping[str, str]] = {output: CALLS[call] for output, call in FAMILIES.calls_by_output.items() if call in CALLS}


def as_function(tool: Json) -> dict[str, Any]:
    """Convert a tool to a function. A tool search may have a description and parameters."""
    kind = str(tool["type"])
    spec = CLIENT_TOOLS[kind]
    return {
        "type": "function",
        "name": kind,
        "description": tool.get("description") or f"{spec.description}{_screen_description(tool)}",
        "parameters": tool.get("parameters") or spec.parameters,
        # The client's own parameters are not strict by default, as for any function.
        "strict": not tool.get("parameters"),
    }


def _screen_description(tool: Json) -> str:
    if "display_width" not in tool:
        return ""
    return f" The screen is {tool['display_width']} by {tool['display_height']} pixels; the environment: {tool['environment']}."


def call_as_function(item: Json) -> dict[str, Any]:
    """Convert an earlier call to a function call."""
    name = "computer_use_preview" if "action" in item and item["type"] == "computer_call" else CALLS[item["type"]]
    arguments = CLIENT_TOOLS[name].arguments(item)
    value = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "id": item["id"], "call_id": item["call_id"], "name": name, "arguments": value}


def output_as_function(item: Json) -> dict[str, Any]:
    """Convert a tool output to a function output: a text, or the image of a screen."""
    return {"type": "function_call_output", "id": item["id"], "call_id": item["call_id"], "output": _output_content(item)}


def _output_content(item: Json) -> str | list[dict[str, Any]]:
    if item["type"] == "computer_call_output":
        return computer.output(item)
    if item["type"] == "tool_search_output":
        return json.dumps({"tools": [tool.get("name", tool["type"]) for tool in item["tools"]]}, ensure_ascii=False)
    if item["type"] == "apply_patch_call_output":
        return str(item.get("output") or item["status"])
    if isinstance(item["output"], str):
        return item["output"]
    return json.dumps([_command_result(entry) for entry in item["output"]], ensure_ascii=False)


def _command_result(result: Json) -> Json:
    outcome = result["outcome"]
    end = {"exit_code": outcome["exit_code"]} if outcome["type"] == "exit" else {"timed_out": True}
    return {"stdout": result["stdout"], "stderr": result["stderr"], **end}


def body(name: str, arguments: str) -> dict[str, Any] | None:
    """Parse the arguments of a call to the item's fields; None if invalid, also for numbers and depths that no event can have."""
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    call_body = CLIENT_TOOLS[name].body(value) if isinstance(value, dict) else None
    return call_body if _can_encode(call_body) else None


def _can_encode(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True
