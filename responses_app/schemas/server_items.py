"""Schemas of items of tools that another server ran. Clients send these items as history; the model sees past calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from responses_app.schemas.base import IMAGE_URL_LIMIT, Array, CallId, LongText, StrictModel

Ended = Literal["in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete", "failed"]
Objects = Array[dict[str, Any]]


class WebSearchCallInput(StrictModel):
    """Web search, or an opened page."""

    type: Literal["web_search_call"]
    id: str | None = None
    action: dict[str, Any] | None = None
    results: Objects | None = None
    status: Ended | None = None


class FileSearchCallInput(StrictModel):
    """File search."""

    type: Literal["file_search_call"]
    id: str | None = None
    queries: Array[LongText] = Field(default_factory=list)
    results: Objects | None = None
    status: Ended | None = None


class CodeInterpreterCallInput(StrictModel):
    """Code that another server ran."""

    type: Literal["code_interpreter_call"]
    id: str | None = None
    code: LongText | None = None
    container_id: str | None = None
    outputs: Objects | None = None
    status: Ended | None = None


class ImageGenerationCall(StrictModel):
    """Generated image; `result` is the image in base64."""

    type: Literal["image_generation_call"]
    id: str | None = None
    result: Annotated[str, Field(max_length=IMAGE_URL_LIMIT)] | None = None
    revised_prompt: LongText | None = None
    action: Literal["generate", "edit", "auto"] | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    output_format: Literal["png", "webp", "jpeg", "gif", "svg"] | None = None
    quality: Literal["low", "medium", "high", "xhigh", "max", "auto"] | None = None
    size: str | None = None
    svg_usage: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    status: Ended | None = None


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
    status: Ended | None = None


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


class Program(StrictModel):
    """Program of the model that called tools."""

    type: Literal["program"]
    id: str | None = None
    call_id: CallId
    code: LongText
    fingerprint: str | None = None


class ProgramOutput(StrictModel):
    """Result of a program."""

    type: Literal["program_output"]
    id: str | None = None
    call_id: CallId
    result: LongText
    status: Literal["completed", "incomplete"] | None = None


SERVER_ITEMS: Mapping[str, type[StrictModel]] = {
    "web_search_call": WebSearchCallInput,
    "file_search_call": FileSearchCallInput,
    "code_interpreter_call": CodeInterpreterCallInput,
    "image_generation_call": ImageGenerationCall,
    "mcp_list_tools": McpListToolsInput,
    "mcp_call": McpCallInput,
    "mcp_approval_request": McpApprovalRequestInput,
    "mcp_approval_response": McpApprovalResponse,
    "program": Program,
    "program_output": ProgramOutput,
}
