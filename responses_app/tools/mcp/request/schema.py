"""Schemas of MCP servers: the declaration in a request, and lists, calls and approvals as input items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from responses_app.tools.http_headers import MAX_HEADER_BYTES
from responses_app.validation.base import Array, CallEnding, Direct, LongText, StrictModel

MAX_URL_LENGTH: Final = 2048
McpToolNames = Annotated[Array[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1024)]


class McpToolFilter(StrictModel):
    """Filter of an MCP server's tools: by name, or by the annotation `readOnlyHint`."""

    tool_names: McpToolNames | None = None
    read_only: bool | None = None


class McpApprovalFilters(StrictModel):
    """`require_approval` with filters: tools that always and tools that never need an approval."""

    always: McpToolFilter | None = None
    never: McpToolFilter | None = None


class McpTool(StrictModel):
    """MCP server whose tools this server calls. `parsing` parses the fields of type `Any`."""

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
    allowed_callers: Direct


class McpListedTool(BaseModel):
    """Tool of an MCP server's list. Servers may add fields."""

    model_config = ConfigDict(strict=True, extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=256)]
    input_schema: dict[str, Any]
    description: LongText | None = None
    annotations: dict[str, Any] | None = None


class McpListToolsInput(StrictModel):
    """Tools of an MCP server."""

    type: Literal["mcp_list_tools"]
    id: str | None = None
    server_label: str
    tools: Array[McpListedTool]
    error: Any = None


class McpCallInput(StrictModel):
    """Call of an MCP server's tool, with output or error."""

    type: Literal["mcp_call"]
    id: str | None = None
    server_label: str
    name: str
    arguments: LongText
    output: LongText | None = None
    error: Any = None
    approval_request_id: str | None = None
    status: CallEnding | None = None


class McpApprovalRequestInput(StrictModel):
    """MCP call that needs approval."""

    type: Literal["mcp_approval_request"]
    id: str | None = None
    server_label: str
    name: str
    arguments: LongText


class McpApprovalResponse(StrictModel):
    """Approval or denial of an MCP call."""

    type: Literal["mcp_approval_response"]
    id: str | None = None
    approval_request_id: str
    approve: bool
    reason: LongText | None = None


MCP_ITEMS: Final[Mapping[str, type[StrictModel]]] = {
    "mcp_list_tools": McpListToolsInput,
    "mcp_call": McpCallInput,
    "mcp_approval_request": McpApprovalRequestInput,
    "mcp_approval_response": McpApprovalResponse,
}
