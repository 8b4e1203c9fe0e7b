"""Names of the semantic conventions of OpenTelemetry for generative AI, and the attributes of a response.

The conventions are in development in the repository open-telemetry/semantic-conventions-genai; the names are those of its commit
COMMIT. No other module has such a name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

COMMIT: Final = "32c328e85013588c6fe32ebc30934ab5b1752b6a"
PROVIDER: Final = "verbatim"

Attributes: TypeAlias = dict[str, str | int | float | bool | Sequence[str]]

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
CONVERSATION_COMPACTED: Final = "gen_ai.conversation.compacted"
OUTPUT_TYPE: Final = "gen_ai.output.type"
REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
REQUEST_TEMPERATURE: Final = "gen_ai.request.temperature"
REQUEST_TOP_P: Final = "gen_ai.request.top_p"
REQUEST_REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
REQUEST_PREVIOUS_RESPONSE_ID: Final = "gen_ai.request.previous_response.id"
RESPONSE_ID: Final = "gen_ai.response.id"
RESPONSE_MODEL: Final = "gen_ai.response.model"
RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
CACHED_TOKENS: Final = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
REASONING_TOKENS: Final = "gen_ai.usage.reasoning.output_tokens"
TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"
# Content, which is recorded only where RESPONSES_OTEL_CONTENT asks for it.
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_RESULT: Final = "gen_ai.tool.call.result"

CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"
# Statuses of a response that goes on after its request, in the background.
RUNNING: Final = ("queued", "in_progress")
# Tools that this server runs, as opposed to functions of the client.
EXTENSION: Final = "extension"


def response_attributes(response: Mapping[str, Any]) -> Attributes:
    """Return the attributes of a response without the content."""
    conversation = response.get("conversation") or {}
    values = {
        OPERATION_NAME: CHAT,
        PROVIDER_NAME: PROVIDER,
        REQUEST_MODEL: response["model"],
        RESPONSE_MODEL: response["model"],
        RESPONSE_ID: response["id"],
        RESPONSE_FINISH_REASONS: None if response["status"] in RUNNING else [finish_reason(response)],
        REQUEST_MAX_TOKENS: response["max_output_tokens"],
        REQUEST_TEMPERATURE: response["temperature"],
        REQUEST_TOP_P: response["top_p"],
        REQUEST_REASONING_LEVEL: response["reasoning"]["effort"],
        REQUEST_PREVIOUS_RESPONSE_ID: response["previous_response_id"],
        CONVERSATION_ID: conversation.get("id"),
        CONVERSATION_COMPACTED: any(item["type"] == "compaction" for item in response["output"]) or None,
        OUTPUT_TYPE: "text" if response["text"]["format"]["type"] == "text" else "json",
        **usage_attributes(response["usage"]),
    }
    return {name: value for name, value in values.items() if value is not None}


def usage_attributes(usage: Mapping[str, Any] | None) -> Attributes:
    """Return the attributes of a usage object."""
    if usage is None:
        return {}
    return {
        INPUT_TOKENS: usage["input_tokens"],
        CACHED_TOKENS: usage["input_tokens_details"]["cached_tokens"],
        OUTPUT_TOKENS: usage["output_tokens"],
        REASONING_TOKENS: usage["output_tokens_details"]["reasoning_tokens"],
    }


def finish_reason(response: Mapping[str, Any]) -> str:
    """Return why a response has ended, in the words of the conventions, else the status."""
    status: str = response["status"]
    if status == "completed":
        # Only calls that the client answers have a `call_id` in the output.
        return "tool_call" if any("call_id" in item for item in response["output"]) else "stop"
    if status == "incomplete":
        reason: str = response["incomplete_details"]["reason"]
        return "length" if reason == "max_output_tokens" else reason
    return "error" if status == "failed" else status


def content_attributes(response: Mapping[str, Any], request_input: Sequence[Mapping[str, Any]]) -> Attributes:
    """Return the attributes with the content of a response and of the input, as JSON."""
    values: Attributes = {
        INPUT_MESSAGES: json.dumps([_message(item) for item in request_input]),
        OUTPUT_MESSAGES: json.dumps([_message(item) for item in response["output"]]),
    }
    if isinstance(response["instructions"], str):
        values[SYSTEM_INSTRUCTIONS] = json.dumps([{"type": "text", "content": response["instructions"]}])
    return values


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as a message with parts."""
    kind, role = item["type"], item.get("role", "assistant")
    if kind == "message":
        parts = item["content"] if isinstance(item["content"], list) else [{"text": item["content"]}]
        return {
            "role": role,
            "parts": [{"type": "text", "content": part.get("text") or part.get("refusal", "")} for part in parts],
        }
    if kind == "reasoning":
        text = "".join(part["text"] for part in item.get("content") or ())
        return {"role": role, "parts": [{"type": "reasoning", "content": text}]}
    if kind.endswith("_output"):
        return {"role": "tool", "parts": [{"type": "tool_call_response", "id": item["call_id"], "result": item.get("output")}]}
    call = {"type": "tool_call", "id": item.get("call_id") or item.get("id", ""), "name": item.get("name") or kind}
    return {"role": role, "parts": [{**call, "arguments": item.get("arguments") or item.get("code")}]}
