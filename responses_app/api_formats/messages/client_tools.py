"""Tools of Anthropic that the client runs: the shell, the text editor, the memory and the computer.

A request names only their type, for Anthropic's models know them. Here each is a function with a description and a schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field

from responses_app.schemas.options import Cacheable
from responses_app.validation.base import Array, validate
from responses_app.validation.errors import Loc, invalid_value, json_path

Schema: TypeAlias = dict[str, Any]
Tool: TypeAlias = dict[str, Any]
# Name, description, properties, required properties.
Function: TypeAlias = tuple[str, str, Schema, list[str]]
STRING: Final[Schema] = {"type": "string"}
INTEGER: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
BOOLEAN: Final[Schema] = {"type": "boolean"}
UNDO_EDITORS: Final = ("text_editor_20241022", "text_editor_20250124")
EDITORS: Final = (*UNDO_EDITORS, "text_editor_20250429", "text_editor_20250728")
COMPUTERS: Final = ("computer_20241022", "computer_20250124", "computer_20251124")
OLD_ACTIONS: Final = (
    *(
        "key",
        "type",
        "mouse_move",
        "left_click",
        "left_click_drag",
        "right_click",
        "middle_click",
        "double_click",
        "screenshot",
    ),
    "cursor_position",
)
ACTIONS: Final = (*OLD_ACTIONS, "left_mouse_down", "left_mouse_up", "triple_click", "scroll", "hold_key", "wait")


class ToolOptions(Cacheable):
    """Fields of all tools but MCP servers."""

    allowed_callers: Array[Literal["direct"]] | None = None
    # A deferred tool is offered when a result refers to it.
    defer_loading: bool | None = None
    # Has an effect only for tools with an `input_schema`.
    strict: bool | None = None


class KnownTool(ToolOptions):
    """Tool of a known type."""

    type: str
    name: str
    # Without an effect: the schema is that of the type.
    input_examples: Array[dict[str, Any]] | None = None


class EditorTool(KnownTool):
    """Text editor."""

    max_characters: Annotated[int, Field(ge=1)] | None = None


class ComputerUseTool(KnownTool):
    """Computer, whose screen the client shows in results."""

    display_width_px: Annotated[int, Field(ge=1)]
    display_height_px: Annotated[int, Field(ge=1)]
    display_number: Annotated[int, Field(ge=0)] | None = None
    enable_zoom: bool | None = None


def _integers(count: int) -> Schema:
    return {"type": "array", "items": INTEGER, "minItems": count, "maxItems": count}


def _bash(raw: Tool, loc: Loc) -> Function:
    validate(KnownTool, raw, loc)
    text = "Runs a command in a bash session, which keeps its state between calls. With `restart` the session begins anew."
    return "bash", text, {"command": STRING, "restart": BOOLEAN}, []


def _editor(raw: Tool, loc: Loc) -> Function:
    fields = validate(EditorTool, raw, loc)
    kind = fields.type
    commands = ["view", "create", "str_replace", "insert"]
    inserted = "insert_text" if kind == "text_editor_20250728" else "new_str"
    text = (
        "Shows, creates and edits files. `view` shows the file or folder `path`, with `view_range` the lines from its first to its "
        "second number, -1 for the last line. `create` writes `file_text` to `path`. `str_replace` replaces `old_str`, which must be "
        f"in the file exactly once, by `new_str`. `insert` puts `{inserted}` after the line `insert_line`, 0 for the beginning."
    )
    if kind in UNDO_EDITORS:
        commands.append("undo_edit")
        text += " `undo_edit` takes back the last edit of `path`."
    if fields.max_characters is not None:
        text += f" A view has at most {fields.max_characters} characters."
    name = "str_replace_editor" if kind in UNDO_EDITORS else "str_replace_based_edit_tool"
    properties = {
        "command": {"type": "string", "enum": commands},
        **dict.fromkeys(("path", "file_text", "old_str", "new_str", inserted), STRING),
        "insert_line": INTEGER,
        "view_range": _integers(2),
    }
    return name, text, properties, ["command", "path"]


def _memory(raw: Tool, loc: Loc) -> Function:
    validate(KnownTool, raw, loc)
    text = (
        "Keeps files below `/memories` from one conversation to the next. View `/memories` before anything else, and note progress "
        "there. `view` shows the file or folder `path`, with `view_range` some lines of it. `create` writes `file_text` to `path`. "
        "`str_replace` replaces `old_str` by `new_str`. `insert` puts `insert_text` after the line `insert_line`. `delete` deletes "
        "`path`. `rename` renames `old_path` to `new_path`."
    )
    commands = ["view", "create", "str_replace", "insert", "delete", "rename"]
    properties = {
        "command": {"type": "string", "enum": commands},
        **dict.fromkeys(("path", "file_text", "old_str", "new_str", "insert_text", "old_path", "new_path"), STRING),
        "insert_line": INTEGER,
        "view_range": _integers(2),
    }
    return "memory", text, properties, ["command"]


def _computer(raw: Tool, loc: Loc) -> Function:
    fields = validate(ComputerUseTool, raw, loc)
    kind = fields.type
    text = (
        f"Controls a computer with a screen of {fields.display_width_px} x {fields.display_height_px} pixels. `screenshot` shows the "
        "screen. Clicks, `mouse_move` and `scroll` take the `coordinate` [x, y] from the upper left corner; `left_click_drag` ends "
        "there. `type` types `text`, and `key` presses the keys `text`, such as `ctrl+s`."
    )
    properties: Schema = {"text": STRING, "coordinate": _integers(2)}
    actions = list(OLD_ACTIONS)
    if kind != "computer_20241022":
        actions = list(ACTIONS)
        text += (
            " `hold_key` and `wait` last `duration` seconds. `scroll` turns the wheel by `scroll_amount` to `scroll_direction`. "
            "`left_click_drag` begins at `start_coordinate`."
        )
        directions = {"type": "string", "enum": ["up", "down", "left", "right"]}
        properties |= {
            "start_coordinate": _integers(2),
            "duration": NUMBER,
            "scroll_amount": INTEGER,
            "scroll_direction": directions,
        }
    if kind == "computer_20251124" and fields.enable_zoom:
        actions.append("zoom")
        text += " `zoom` shows the `region` [x1, y1, x2, y2] in full resolution."
        properties["region"] = _integers(4)
    return "computer", text, {"action": {"type": "string", "enum": actions}, **properties}, ["action"]


CLIENT_TOOLS: Final[Mapping[str, Callable[[Tool, Loc], Function]]] = {
    **dict.fromkeys(("bash_20241022", "bash_20250124"), _bash),
    **dict.fromkeys(EDITORS, _editor),
    "memory_20250818": _memory,
    **dict.fromkeys(COMPUTERS, _computer),
}


def client_tool(raw: Tool, loc: Loc) -> dict[str, Any]:
    """Return a tool of CLIENT_TOOLS as a function of Responses. Raises InvalidRequest."""
    name, description, properties, required = CLIENT_TOOLS[raw["type"]](raw, loc)
    if raw["name"] != name:
        raise invalid_value(json_path((*loc, "name")), raw["name"], f"'{name}'")
    parameters = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return {"type": "function", "name": name, "description": description, "parameters": parameters, "strict": False}
