"""Schemas of input items, a class for each item type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.schemas.client_items import CLIENT_ITEMS
from responses_app.schemas.control_items import CompactionTrigger, ConfigurationUpdate
from responses_app.schemas.server_items import SERVER_ITEMS
from responses_app.validation.base import Array, CalledName, Caller, CallId, LongText, Status, StrictModel, validate
from responses_app.validation.errors import Loc

# Fields that openai-python adds to its own objects: parsed copies of text and arguments.
COPIES = frozenset({"parsed", "parsed_arguments"})


class ReasoningTextPart(StrictModel):
    """A part of a reasoning item's `content`."""

    type: Literal["reasoning_text"]
    text: LongText


class SummaryTextPart(StrictModel):
    """A part of a reasoning item's `summary`."""

    type: Literal["summary_text"]
    text: LongText


class MessageInput(StrictModel):
    """Message; `schemas.parsing.content` checks the content part by part."""

    type: Literal["message"] = "message"
    id: str | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: Any
    status: Status | None = None
    phase: Literal["commentary", "final_answer"] | None = None


class FunctionCallInput(StrictModel):
    """Function call of the model."""

    type: Literal["function_call"]
    id: str | None = None
    call_id: CallId
    name: CalledName
    arguments: LongText
    status: Status | None = None
    async_: bool | None = Field(default=None, alias="async")
    caller: Caller | None = None
    namespace: Annotated[str, Field(max_length=128)] | None = None


class FunctionCallOutputInput(StrictModel):
    """Result of a function, sent by the client."""

    type: Literal["function_call_output"]
    id: str | None = None
    call_id: CallId
    output: Any
    status: Status | None = None
    name: Annotated[str, Field(max_length=128)] | None = None
    caller: Caller | None = None
    namespace: Annotated[str, Field(max_length=128)] | None = None
    created_by: str | None = None


class CustomToolCallInput(StrictModel):
    """Custom tool call of the model."""

    type: Literal["custom_tool_call"]
    id: str | None = None
    call_id: CallId
    name: CalledName
    input: LongText
    status: Status | None = None
    async_: bool | None = Field(default=None, alias="async")
    caller: Caller | None = None
    namespace: Annotated[str, Field(max_length=128)] | None = None
    created_by: str | None = None


class CustomToolCallOutputInput(StrictModel):
    """Result of a custom tool, sent by the client."""

    type: Literal["custom_tool_call_output"]
    id: str | None = None
    call_id: CallId
    output: Any = None
    status: Status | None = None
    caller: Caller | None = None
    created_by: str | None = None


class ReasoningInput(StrictModel):
    """Reasoning of an earlier response: content, summary or encrypted content."""

    type: Literal["reasoning"]
    id: str | None = None
    summary: Array[SummaryTextPart] = Field(default_factory=list)
    content: Array[ReasoningTextPart] | None = None
    encrypted_content: str | None = None
    status: Status | None = None


class CompactionInput(StrictModel):
    """Compaction: earlier items as an encrypted token of this server."""

    type: Literal["compaction"]
    id: str | None = None
    encrypted_content: LongText
    created_by: str | None = None


class AdditionalTools(StrictModel):
    """Tools that are offered from this item on."""

    type: Literal["additional_tools"]
    id: str | None = None
    role: Literal["developer"]
    tools: Annotated[list[Any], Field(min_length=1)]


class ItemReferenceInput(StrictModel):
    """Reference to a stored item by id."""

    type: Literal["item_reference"] | None = None
    id: str


MODELS: Mapping[str, type[StrictModel]] = {
    "message": MessageInput,
    "function_call": FunctionCallInput,
    "function_call_output": FunctionCallOutputInput,
    "custom_tool_call": CustomToolCallInput,
    "custom_tool_call_output": CustomToolCallOutputInput,
    "reasoning": ReasoningInput,
    "compaction": CompactionInput,
    "additional_tools": AdditionalTools,
    "configuration_update": ConfigurationUpdate,
    "compaction_trigger": CompactionTrigger,
    "item_reference": ItemReferenceInput,
    **CLIENT_ITEMS,
    **SERVER_ITEMS,
}


def valid(model: type[StrictModel], raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Validate `raw` against `model`; absent keys stay absent. Raises InvalidRequest."""
    item = validate(model, {key: value for key, value in raw.items() if key not in COPIES}, loc)
    return item.model_dump(exclude_none=True, by_alias=True)
