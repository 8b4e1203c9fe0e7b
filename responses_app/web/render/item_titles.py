"""Title, accessible name and state of an item, the same on every page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.web.render.sanitize import visible

MAX_NAME_CHARS: Final = 200
# Title and accessible name of the calls of server tools without a name of their own.
SERVER_TOOLS: Final = {
    "code_interpreter_call": ("Code interpreter", "Code run by the server"),
    "web_search_call": ("Web search", "Web search by the server"),
    "file_search_call": ("File search", "File search by the server"),
    "mcp_approval_response": ("Approval", "Decision"),
}
PAGE_ACTIONS: Final = {"open_page": "Open page", "find_in_page": "Find in page"}
UNFINISHED: Final = {"in_progress": "Writing…", "interpreting": "Running…", "searching": "Running…"}
STATES: Final = {"failed": "Failed", "incomplete": "Cut off"}
CLIENT_CALLS: Final = frozenset({"function_call", "custom_tool_call"})


def item_title(item: Mapping[str, Any]) -> str:
    """Return the heading of an item: the name of a tool with its server, or the type in words."""
    kind, name, server = _names(item)
    if kind == "mcp_list_tools":
        return visible(f"{server} · {_tool_count(item)}")
    if kind == "web_search_call":
        action = item.get("action")
        name = PAGE_ACTIONS.get(str(action.get("type")) if isinstance(action, Mapping) else "", "")
    return visible(" · ".join(filter(None, (name or SERVER_TOOLS.get(kind, (_words(kind),))[0], server))))


def item_label(item: Mapping[str, Any]) -> str:
    """Return the accessible name of an item."""
    kind, name, server = _names(item)
    of_server = f" of {server}" if server else ""
    if kind == "mcp_list_tools":
        return visible(f"Tools{of_server}")
    if kind == "mcp_approval_request":
        return visible(f"Approval for {name}{of_server}")
    if kind in SERVER_TOOLS:
        return SERVER_TOOLS[kind][1]
    return visible(f"Call to {name}{of_server}" if name else _words(kind))


def is_unfinished(item: Mapping[str, Any]) -> bool:
    """Return whether the model still writes the item, or its tool still runs."""
    return item.get("status") in UNFINISHED


def item_state(item: Mapping[str, Any], *, is_answered: bool) -> str:
    """Return the state of a call: what it waits for, or how it ended. Empty for an output."""
    kind, status = str(item.get("type")), str(item.get("status") or "")
    if kind == "mcp_list_tools":
        return "Failed" if item.get("error") else "" if item.get("tools") else "Loading…"
    if kind == "mcp_approval_request":
        return "" if is_answered else "Approval needed"
    if kind.endswith("_output") or kind == "mcp_approval_response":
        return ""
    if is_unfinished(item):
        return UNFINISHED[status]
    if kind in CLIENT_CALLS and not is_answered and status != "incomplete":
        return "Waiting for result"
    return STATES.get(status, "Done")


def duration_text(seconds: float) -> str:
    """Format a duration as `66 ms`, `1.2 s` or `2 min 3 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _names(item: Mapping[str, Any]) -> tuple[str, str, str]:
    name, server = (str(item.get(key) or "")[:MAX_NAME_CHARS] for key in ("name", "server_label"))
    return str(item.get("type") or "message"), name, server


def _tool_count(item: Mapping[str, Any]) -> str:
    if item.get("error"):
        return "tools not available"
    count = len(item.get("tools") or ())
    return f"{count} tool{'' if count == 1 else 's'}" if count else "tools"


def _words(kind: str) -> str:
    return kind.replace("_", " ").capitalize()
