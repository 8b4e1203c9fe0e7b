"""Items of tools that another server ran, as clients bring them along: kept as they are, told to the model as past calls (§1.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.base import IMAGE_URL_LIMIT, Array, CallId, LongText, StrictModel

Ended = Literal["in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete", "failed"]
Objects = Array[dict[str, Any]]


class WebSearchCall(StrictModel):
    """A search of the web, or a page that was opened."""

    type: Literal["web_search_call"]
    id: str | None = None
    action: dict[str, Any] | None = None
    results: Objects | None = None
    status: Ended | None = None


class FileSearchCall(StrictModel):
    """A search of files."""

    type: Literal["file_search_call"]
    id: str | None = None
    queries: Array[LongText] = Field(default_factory=list)
    results: Objects | None = None
    status: Ended | None = None


class CodeInterpreterCallInput(StrictModel):
    """Code that was run."""

    type: Literal["code_interpreter_call"]
    id: str | None = None
    code: LongText | None = None
    container_id: str | None = None
    outputs: Objects | None = None
    status: Ended | None = None


class ImageGenerationCall(StrictModel):
    """A picture that was made; `result` is the picture."""

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


class McpListToolsInput(StrictModel):
    """The tools of an MCP server."""

    type: Literal["mcp_list_tools"]
    id: str | None = None
    server_label: str
    tools: Objects
    error: Any = None


class McpCallInput(StrictModel):
    """A call of a tool of an MCP server, with what came of it."""

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
    """A call that was not to be made unasked."""

    type: Literal["mcp_approval_request"]
    id: str | None = None
    server_label: str
    name: str
    arguments: LongText


class McpApprovalResponse(StrictModel):
    """What the user said to it."""

    type: Literal["mcp_approval_response"]
    id: str | None = None
    approval_request_id: str
    approve: bool
    reason: LongText | None = None


class Program(StrictModel):
    """A program that called tools."""

    type: Literal["program"]
    id: str | None = None
    call_id: CallId
    code: LongText
    fingerprint: str | None = None


class ProgramOutput(StrictModel):
    """What the program came to."""

    type: Literal["program_output"]
    id: str | None = None
    call_id: CallId
    result: LongText
    status: Literal["completed", "incomplete"] | None = None


HOSTED_ITEMS: Mapping[str, type[StrictModel]] = {
    "web_search_call": WebSearchCall,
    "file_search_call": FileSearchCall,
    "code_interpreter_call": CodeInterpreterCallInput,
    "image_generation_call": ImageGenerationCall,
    "mcp_list_tools": McpListToolsInput,
    "mcp_call": McpCallInput,
    "mcp_approval_request": McpApprovalRequestInput,
    "mcp_approval_response": McpApprovalResponse,
    "program": Program,
    "program_output": ProgramOutput,
}
# Types that have no `status` at all.
WITHOUT_STATUS = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "program"})
