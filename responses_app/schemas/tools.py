"""Schemas of the tools of a request, a class for each tool type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field

from responses_app.schemas.base import NAME, Array, LongText, StrictModel
from responses_app.schemas.client_items import LocalEnvironment
from responses_app.tools.http_headers import MAX_HEADER_BYTES
from responses_app.tools.registry import BY_TYPE

MAX_URL_LENGTH = 2048
McpToolNames = Annotated[Array[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1024)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]
MAX_GRAMMAR_LENGTH = 32_768


class FunctionTool(StrictModel):
    """Function that the client runs."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    # Only direct calls by the model exist here; other callers are rejected.
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class CustomTextFormat(StrictModel):
    """`format` of a custom tool that takes any text."""

    type: Literal["text"]


class GrammarFormat(StrictModel):
    """`format` of a custom tool with a grammar for the input."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: str


class CustomTool(StrictModel):
    """Custom tool: the client runs a tool on free text."""

    type: Literal["custom"]
    name: Name
    description: str | None = None
    format: Any = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ShellTool(StrictModel):
    """Shell that the client runs."""

    type: Literal["shell"]
    environment: LocalEnvironment | None = None
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class LocalShellTool(StrictModel):
    """Shell that the client runs, in the first version of the API."""

    type: Literal["local_shell"]


class ApplyPatchTool(StrictModel):
    """Patches of files that the client applies."""

    type: Literal["apply_patch"]
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


class ToolSearchTool(StrictModel):
    """Search for deferred tools, run by the client."""

    type: Literal["tool_search"]
    execution: Literal["client"]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ComputerTool(StrictModel):
    """Computer of the client: mouse, keyboard and screen."""

    type: Literal["computer"]


class ComputerPreviewTool(StrictModel):
    """Computer of the client, in the first version of the API."""

    type: Literal["computer_use_preview"]
    display_height: Annotated[int, Field(ge=1)]
    display_width: Annotated[int, Field(ge=1)]
    environment: Literal["windows", "mac", "linux", "ubuntu", "browser"]


class NamespaceTool(StrictModel):
    """Namespace: tools under a common name."""

    type: Literal["namespace"]
    name: Name
    description: str | None = None
    tools: Annotated[list[Any], Field(min_length=1, max_length=128)]


class McpToolFilter(StrictModel):
    """Filter of an MCP server's tools: by name, or by the annotation `readOnlyHint`."""

    tool_names: McpToolNames | None = None
    read_only: bool | None = None


class McpApprovalFilters(StrictModel):
    """`require_approval` with filters: tools that always and tools that never need an approval."""

    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


class McpTool(StrictModel):
    """MCP server whose tools this server calls. `schemas.parsing.mcp_tools` parses the fields of type `Any`."""

    type: Literal["mcp"]
    server_label: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")]
    server_url: Annotated[str, Field(max_length=MAX_URL_LENGTH)] | None = None
    connector_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    tunnel_id: Any = None
    server_description: LongText | None = None
    authorization: Annotated[str, Field(min_length=1, max_length=MAX_HEADER_BYTES)] | None = None
    headers: Any = None
    allowed_tools: Any = None
    require_approval: Any = None
    defer_loading: bool = False
    allowed_callers: Array[Literal["direct"]] = Field(default_factory=list)


CLIENT: Mapping[str, type[StrictModel]] = {
    "shell": ShellTool,
    "local_shell": LocalShellTool,
    "apply_patch": ApplyPatchTool,
    "tool_search": ToolSearchTool,
    "computer": ComputerTool,
    "computer_use_preview": ComputerPreviewTool,
}

# Tool types that the server runs, unless RESPONSES_INACTIVE_TOOLS names them or a setting is missing.
SERVER = frozenset({"mcp", *BY_TYPE})
# Types of server tools in the API of OpenAI.
API_SERVER_TOOLS = SERVER | {"image_generation", "programmatic_tool_calling"}


def server_types() -> list[str]:
    """Return the tool types that the server runs."""
    return sorted(filter(is_run_by_server, SERVER))


def is_run_by_server(kind: str) -> bool:
    """Return True for a tool type that the server runs."""
    return kind in SERVER and kind not in settings.RESPONSES_INACTIVE_TOOLS and missing_setting(kind) is None


def missing_setting(kind: str) -> str | None:
    """Return the name of the setting that is empty although tools of the type `kind` need the setting; None without such a setting."""
    name = BY_TYPE[kind].setting if kind in BY_TYPE else ""
    return name if name and not getattr(settings, name) else None
