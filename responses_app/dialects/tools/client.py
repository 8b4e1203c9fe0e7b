"""Tools that the protocol names and the client runs: shells, patches, searches, computers, each told to models as a function.

A call of one is heard whole, since its item has a shape of its own; arguments that do not have that shape stay what they are, a function
call (§1.5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from responses_app.dialects.tools import computer
from responses_app.protocol.items.client_tools.client_call import ClientCallType
from responses_app.protocol.items.registry import FAMILIES

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ClientToolSpec:
    """How a tool is told, and how its calls and their outputs turn into those of a function and back."""

    kind: ClientCallType
    description: str
    parameters: Json
    # The body of the call's item from arguments, None if these are no such call; and the arguments of an item.
    body: Callable[[Json], dict[str, Any] | None]
    arguments: Callable[[Json], Json]


def _schema(required: Sequence[str], **properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_STRINGS: Final = {"type": "array", "items": {"type": "string"}}
_LIMIT: Final = {"type": "integer"}
_OPERATIONS: Final = ("create_file", "update_file", "delete_file")


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _limit(value: object) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool))


def _shell(said: Json) -> dict[str, Any] | None:
    limits = {key: said.get(key) for key in ("timeout_ms", "max_output_length")}
    if not _strings(said.get("commands")) or not all(map(_limit, limits.values())):
        return None
    return {"action": {"commands": said["commands"], **limits}, "environment": {"type": "local"}}


def _local_shell(said: Json) -> dict[str, Any] | None:
    # Without null for what is not said: the AI SDK refuses the whole response for one (clients.md §3.1).
    more = {key: said[key] for key in ("timeout_ms", "working_directory") if said.get(key) is not None}
    if not _strings(said.get("command")) or not _limit(more.get("timeout_ms")):
        return None
    if not isinstance(more.get("working_directory", ""), str):
        return None
    return {"action": {"type": "exec", "command": said["command"], "env": {}, **more}}


def _apply_patch(said: Json) -> dict[str, Any] | None:
    kind, path, diff = said.get("type"), said.get("path"), said.get("diff", "")
    if kind not in _OPERATIONS or not isinstance(path, str) or not isinstance(diff, str):
        return None
    return {"operation": {"type": kind, "path": path, **({} if kind == "delete_file" else {"diff": diff})}}


def _tool_search(said: Json) -> dict[str, Any]:
    return {"execution": "client", "arguments": said}


def _action(item: Json) -> Json:
    wanted = ("commands", "command", "timeout_ms", "max_output_length", "working_directory")
    return {key: value for key, value in item["action"].items() if key in wanted and value is not None}


def _operation(item: Json) -> Json:
    return {"diff": "", **item["operation"]}


def _searched(item: Json) -> Json:
    arguments = item["arguments"]
    return arguments if isinstance(arguments, Mapping) else {"query": arguments}


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
        _searched,
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


def function(tool: Json) -> dict[str, Any]:
    """The function that a model is told; a tool search may bring a description and parameters of its own."""
    kind = str(tool["type"])
    own = CLIENT_TOOLS[kind]
    return {
        "type": "function",
        "name": kind,
        "description": tool.get("description") or f"{own.description}{_screen(tool)}",
        "parameters": tool.get("parameters") or own.parameters,
        # Parameters of the client's own are what any function's are.
        "strict": not tool.get("parameters"),
    }


def _screen(tool: Json) -> str:
    if "display_width" not in tool:
        return ""
    return f" The screen is {tool['display_width']} by {tool['display_height']} pixels; the environment: {tool['environment']}."


def call(item: Json) -> dict[str, Any]:
    """An earlier call as that of a function."""
    name = "computer_use_preview" if "action" in item and item["type"] == "computer_call" else CALLS[item["type"]]
    arguments = CLIENT_TOOLS[name].arguments(item)
    said = json.dumps(arguments, ensure_ascii=False)
    return {"type": "function_call", "id": item["id"], "call_id": item["call_id"], "name": name, "arguments": said}


def output(item: Json) -> dict[str, Any]:
    """What a tool gave back as the output of a function: a text, or the picture of a screen."""
    return {"type": "function_call_output", "id": item["id"], "call_id": item["call_id"], "output": _given(item)}


def _given(item: Json) -> str | list[dict[str, Any]]:
    if item["type"] == "computer_call_output":
        return computer.output(item)
    if item["type"] == "tool_search_output":
        return json.dumps({"tools": [tool.get("name", tool["type"]) for tool in item["tools"]]}, ensure_ascii=False)
    if item["type"] == "apply_patch_call_output":
        return str(item.get("output") or item["status"])
    if isinstance(item["output"], str):
        return item["output"]
    return json.dumps([_ran(one) for one in item["output"]], ensure_ascii=False)


def _ran(result: Json) -> Json:
    outcome = result["outcome"]
    end = {"exit_code": outcome["exit_code"]} if outcome["type"] == "exit" else {"timed_out": True}
    return {"stdout": result["stdout"], "stderr": result["stderr"], **end}


def body(name: str, arguments: str) -> dict[str, Any] | None:
    """What the item of this call holds; None if the arguments are not such a call."""
    try:
        said = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    return CLIENT_TOOLS[name].body(said) if isinstance(said, dict) else None
