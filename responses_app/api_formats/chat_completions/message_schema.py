"""Schemas of the messages of `POST /v1/chat/completions`, and of the parts of a message."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from responses_app.schemas.options import Cacheable, CacheBreakpoint
from responses_app.validation.base import Array, CalledName, CallId, LongText, StrictModel


class ChatMessage(Cacheable):
    """Message. LiteLLM marks whole messages for the cache, which has no effect: every prefix is cached."""

    name: str | None = None


class InstructionMessage(ChatMessage):
    """Message of the system or the developer."""

    role: Literal["system", "developer"]
    content: Any


class UserMessage(ChatMessage):
    """Message of the user."""

    role: Literal["user"]
    content: Any


class CalledFunction(StrictModel):
    """`function` of an earlier call."""

    name: CalledName
    arguments: LongText
    # From LiteLLM: a signature of Gemini. The model does not read this field.
    provider_specific_fields: Any = None


class CalledCustomTool(StrictModel):
    """`custom` of an earlier call."""

    name: CalledName
    input: LongText


class ToolCall(StrictModel):
    """Earlier call of the model. Clients that join streamed chunks send the `index` back."""

    id: CallId
    type: Literal["function", "custom"] = "function"
    function: CalledFunction | None = None
    custom: CalledCustomTool | None = None
    index: int | None = None
    # From LiteLLM: a signature of Gemini, and the caller of a call of Anthropic's API, neither of which the model reads.
    provider_specific_fields: Any = None
    caller: Any = None


class AssistantMessage(ChatMessage):
    """Earlier answer of the model. The reasoning has the name of DeepSeek's API or the newer one of vLLM."""

    role: Literal["assistant"]
    content: Any = None
    refusal: LongText | None = None
    reasoning_content: LongText | None = None
    reasoning: LongText | None = None
    tool_calls: Array[ToolCall] | None = None
    # Parts of an answer that clients send back, and that the model does not read.
    annotations: Any = None
    parsed: Any = None
    provider_specific_fields: Any = None
    # The reasoning of an answer that LiteLLM got from another API; a text is in `reasoning_content` too.
    thinking_blocks: Any = None
    reasoning_items: Any = None


class ToolMessage(ChatMessage):
    """Result of a call, sent by the client."""

    role: Literal["tool"]
    tool_call_id: CallId
    content: Any


MESSAGES: Mapping[str, type[StrictModel]] = {
    "system": InstructionMessage,
    "developer": InstructionMessage,
    "user": UserMessage,
    "assistant": AssistantMessage,
    "tool": ToolMessage,
}


class ImageUrl(StrictModel):
    """`image_url` of a part."""

    url: str
    detail: Literal["low", "high", "auto", "original"] | None = None


class ChatFile(StrictModel):
    """`file` of a part."""

    file_id: str | None = None
    file_data: str | None = None
    filename: str | None = None


class ChatPart(Cacheable):
    """Part of a message. Every prefix is cached, so marks of OpenAI's and Anthropic's clients for the cache have no effect."""

    prompt_cache_breakpoint: CacheBreakpoint | None = None


class ChatTextPart(ChatPart):
    """Text of a message."""

    type: Literal["text"]
    text: LongText


class AnswerTextPart(ChatTextPart):
    """Text of an earlier answer, with the other fields of the answer as @openai/agents sends these back, unread by the model."""

    role: Literal["assistant"] | None = None
    refusal: LongText | None = None
    reasoning_content: LongText | None = None
    annotations: Any = None
    logprobs: Any = None


class ChatImagePart(ChatPart):
    """Image of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


class ChatFilePart(ChatPart):
    """File of a message."""

    type: Literal["file"]
    file: ChatFile


class ChatRefusalPart(StrictModel):
    """Earlier refusal of the model."""

    type: Literal["refusal"]
    refusal: LongText


PARTS: Mapping[str, type[StrictModel]] = {
    "text": ChatTextPart,
    "image_url": ChatImagePart,
    "file": ChatFilePart,
    "refusal": ChatRefusalPart,
}
