"""Registry of server tools, and the tables that other modules derive from their declarations.

MCP servers are server tools without a `ServerTool`: a request may name several, and their functions come from the servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.conf import settings

from responses_app.dialects.toolset import RECIPIENT
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.tools.base import Json
from responses_app.tools.code_interpreter.declaration import CODE_INTERPRETER
from responses_app.tools.declaration import OptionalParts, PastCall, ServerTool
from responses_app.tools.file_search.declaration import FILE_SEARCH
from responses_app.tools.web_search.declaration import WEB_SEARCH
from responses_app.validation.base import StrictModel

# The order is that of the functions in prompts.
SERVER_TOOLS: Final[tuple[ServerTool, ...]] = (CODE_INTERPRETER, WEB_SEARCH, FILE_SEARCH)
# Type of a declared tool -> server tool.
BY_TYPE: Final[Mapping[str, ServerTool]] = {kind: tool for tool in SERVER_TOOLS for kind in tool.types}
# Type of an item -> conversion to a function call.
PAST_CALLS: Final[Mapping[str, PastCall]] = {kind: call for tool in SERVER_TOOLS for kind, call in tool.past_calls.items()}
OPTIONAL_PARTS: Final[Mapping[type[ToolResult], OptionalParts]] = {
    result: parts for tool in SERVER_TOOLS for result, parts in tool.optional_parts.items()
}
# Type of an item -> its schema in the input of a request.
INPUT_ITEMS: Final[Mapping[str, type[StrictModel]]] = {
    kind: item for tool in SERVER_TOOLS for kind, item in tool.input_items.items()
}
# Values of `include` that name parts of results.
INCLUDES: Final = tuple(name for tool in SERVER_TOOLS for name in tool.includes)
FUNCTIONS: Final[Mapping[str, Json]] = {name: function for tool in SERVER_TOOLS for name, function in tool.functions.items()}
# Function -> tool of gpt-oss that takes its place.
RECIPIENTS: Final = {name: str(function[RECIPIENT]) for name, function in FUNCTIONS.items() if RECIPIENT in function}
# Server label of requests for the approval of calls -> server tool. The label of an MCP server has no blank.
BY_APPROVAL_LABEL: Final[Mapping[str, ServerTool]] = {tool.approval_label: tool for tool in SERVER_TOOLS}
# Tool types that the server runs, unless RESPONSES_INACTIVE_TOOLS names them or a setting is missing.
SERVER_TYPES: Final = frozenset({"mcp", *BY_TYPE})


def server_types() -> list[str]:
    """Return the tool types that the server runs."""
    return sorted(filter(is_run_by_server, SERVER_TYPES))


def is_run_by_server(kind: str) -> bool:
    """Return True for a tool type that the server runs."""
    return kind in SERVER_TYPES and kind not in settings.RESPONSES_INACTIVE_TOOLS and missing_setting(kind) is None


def missing_setting(kind: str) -> str | None:
    """Return the name of the setting that is empty although tools of the type `kind` need the setting; None without such a setting."""
    name = BY_TYPE[kind].setting if kind in BY_TYPE else ""
    return name if name and not getattr(settings, name) else None
