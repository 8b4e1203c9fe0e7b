"""Schema of `POST /v1/messages`. docs/api/messages.md lists each field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.api_formats.messages.client_tools import ToolOptions
from responses_app.api_formats.messages.mcp_toolsets import McpServerUrl
from responses_app.api_formats.messages.tool_changes import TOOL_CHANGES, ToolChange
from responses_app.api_formats.messages.unread import CitationsConfig, ContextEdits, EarlierCitation, ToolCaller
from responses_app.schemas.options import Cacheable
from responses_app.schemas.tools import LongName
from responses_app.validation.base import ARRAY_LIMIT, Array, CallId, LongText, StrictModel

# Fields that are refused, with the reason.
REFUSED: Mapping[str, str] = {
    "billing_policy": "this server bills nobody",
    "compaction": "this server compacts with '/v1/responses/compact' alone",
    "container": "containers are not shared between requests of this format",
    "diagnostics": "this server has 'prompt_cache_diagnostics' for Responses alone",
    "fallback_credit_token": "this server has no fallbacks",
    "fallbacks": "a request runs on the model that it names",
    "prefill": "this server continues no answer that has begun",
    "thread": "send all messages of the conversation with each request",
    "user_profile_id": "this server has no profiles of users",
    "workspace_id": "the project of the key is the workspace",
}


class BlockBinding(StrictModel):
    """Treatment of reasoning that is sent back in another conversation."""

    prefix_mismatch_behavior: Literal["error", "drop_block"] | None = None


class Thinking(StrictModel):
    """`thinking`: whether the reasoning is shown."""

    type: Literal["enabled", "disabled", "adaptive", "between_tools"]
    budget_tokens: Annotated[int, Field(ge=1)] | None = None
    # Without an effect: the reasoning is shown as it is.
    display: Literal["summarized", "omitted", "updates"] | None = None
    # Without an effect: reasoning belongs to no conversation here.
    block_binding: BlockBinding | None = None


class JsonOutput(StrictModel):
    """`format` of the output."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class MessageEffort(StrictModel):
    """`output_config` of a message of the role `system`."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None


class SystemOptions(StrictModel):
    """Fields of a message of the role `system` besides the content."""

    output_config: MessageEffort | None = None
    # When the text is no longer shown: once a message of the user follows.
    clear_at: Literal["next_user_message", "never"] | None = None


class OutputConfig(MessageEffort):
    """`output_config`."""

    format: JsonOutput | None = None
    # Refused by `check_budget`.
    task_budget: Any = None


class MessageMetadata(StrictModel):
    """`metadata`."""

    user_id: Annotated[str, Field(max_length=512)] | None = None


class ToolChoice(StrictModel):
    """`tool_choice`."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class ClientTool(ToolOptions):
    """Tool that the client runs."""

    name: LongName
    input_schema: dict[str, Any]
    type: Literal["custom"] | None = None
    description: str | None = None
    # Without an effect here: arguments are always streamed.
    eager_input_streaming: bool | None = None
    input_examples: Array[dict[str, Any]] | None = None


class SearchTool(ToolOptions):
    """Web search that the server runs."""

    type: str
    name: Literal["web_search"]
    allowed_domains: Array[str] | None = None
    blocked_domains: Array[str] | None = None
    max_uses: Annotated[int, Field(ge=1)] | None = None
    user_location: dict[str, Any] | None = None


class CodeTool(ToolOptions):
    """Code execution that the server runs."""

    type: str
    name: Literal["code_execution"]


class MessagesRequest(Cacheable):
    """Schema of the body; `messages` are validated one by one, and values that mean the same in Responses are validated there."""

    model: str | None = None
    messages: Annotated[list[Any], Field(min_length=1, max_length=ARRAY_LIMIT)]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    system: Any = None
    stream: bool | None = None
    stop_sequences: Array[str] | None = None
    temperature: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    top_k: Annotated[int, Field(ge=0)] | None = None
    tools: Array[dict[str, Any]] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    # The name of `output_config.format` in the beta before, which older clients send.
    output_format: JsonOutput | None = None
    mcp_servers: Array[McpServerUrl] | None = None
    metadata: MessageMetadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    speed: Literal["standard", "fast"] | None = None
    # Not in Anthropic's API.
    seed: int | None = None
    # Without an effect: no context is edited.
    context_management: ContextEdits | None = None
    inference_geo: str | None = None


class SourceData(StrictModel):
    """`source` of an image or a document."""

    type: Literal["base64", "url", "file", "text", "content"]
    media_type: str | None = None
    data: LongText | None = None
    url: str | None = None
    file_id: str | None = None
    content: Any = None


class TextBlock(Cacheable):
    """Text."""

    type: Literal["text"]
    text: LongText
    citations: Array[EarlierCitation] | None = None


class ImageBlock(Cacheable):
    """Image."""

    type: Literal["image"]
    source: SourceData


class DocumentBlock(Cacheable):
    """Document. Models of this server cite no documents, so `citations` have no effect."""

    type: Literal["document"]
    source: SourceData
    title: str | None = None
    context: str | None = None
    citations: CitationsConfig | None = None


class SearchResultBlock(Cacheable):
    """Result of a search that the client has made. Models of this server cite no results, so `citations` have no effect."""

    type: Literal["search_result"]
    source: str
    title: str
    content: list[Any]
    citations: CitationsConfig | None = None


class ThinkingBlock(StrictModel):
    """Earlier reasoning. The signature is the reasoning in encrypted form."""

    type: Literal["thinking"]
    thinking: LongText
    signature: str | None = None


class RedactedBlock(StrictModel):
    """Earlier reasoning in encrypted form alone."""

    type: Literal["redacted_thinking"]
    data: LongText


class UseBlock(Cacheable):
    """Earlier call."""

    id: CallId
    name: str
    input: dict[str, Any]


class ToolUseBlock(UseBlock):
    """Earlier call of the model."""

    type: Literal["tool_use"]
    caller: ToolCaller | None = None
    toolset_name: str | None = None


class ToolResultBlock(Cacheable):
    """Result of a call, sent by the client."""

    type: Literal["tool_result"]
    tool_use_id: CallId
    content: Any = None
    is_error: bool | None = None
    toolset_name: str | None = None


class ToolReferenceBlock(Cacheable):
    """Name of a deferred tool that the client has found, in the result of the client's search of tools."""

    type: Literal["tool_reference"]
    tool_name: str


class ServerUseBlock(UseBlock):
    """Earlier call that the server ran: a search or code."""

    type: Literal["server_tool_use"]
    caller: ToolCaller | None = None


class McpUseBlock(UseBlock):
    """Earlier call of an MCP server."""

    type: Literal["mcp_tool_use"]
    server_name: str


class ServerResultBlock(Cacheable):
    """Result of an earlier call that the server ran."""

    type: Literal["web_search_tool_result", "code_execution_tool_result", "mcp_tool_result"]
    tool_use_id: CallId
    content: Any = None
    is_error: bool | None = None
    caller: ToolCaller | None = None


BLOCKS: Mapping[str, type[StrictModel]] = {
    **dict.fromkeys(TOOL_CHANGES, ToolChange),
    "text": TextBlock,
    "image": ImageBlock,
    "document": DocumentBlock,
    "search_result": SearchResultBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
    "tool_reference": ToolReferenceBlock,
    "server_tool_use": ServerUseBlock,
    "mcp_tool_use": McpUseBlock,
    "web_search_tool_result": ServerResultBlock,
    "code_execution_tool_result": ServerResultBlock,
    "mcp_tool_result": ServerResultBlock,
}
