"""Message of a response that has ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from responses_app.api_formats.incomplete import incomplete_details
from responses_app.api_formats.messages.blocks import blocks, excess_searches, is_search
from responses_app.dialects.content import TEXT_ONLY
from responses_app.errors import ApiError

Json: TypeAlias = Mapping[str, Any]
PREFIX: Final = "msg_"
# Header of requests of clients of Anthropic's API.
VERSION_HEADER: Final = "anthropic-version"
# With this error code the anthropic package sends the request again without `thread`.
NO_THREADS: Final = "thread_unsupported_request"
# Types of errors by HTTP status.
ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    507: "overloaded_error",
}


def message_id(uid: str) -> str:
    """Return the id of the message of the response `uid`."""
    return PREFIX + uid.removeprefix("resp_")


def message(response: Json, *, shows_thinking: bool) -> dict[str, Any]:
    """Return the message of a response, which has not failed."""
    content = [block for item in response["output"] for block in blocks(item, shows_thinking=shows_thinking)]
    return {
        "id": message_id(response["id"]),
        "type": "message",
        "role": "assistant",
        "model": response["model"],
        "content": [*content, *excess_searches(response)],
        "stop_reason": stop_reason(response),
        "stop_sequence": response.get("stop_sequence"),
        **incomplete_details(response),
        "usage": usage(response),
    }


def stop_reason(response: Json) -> str:
    """Return why the message has ended.

    The reason is `end_turn`, `max_tokens`, `model_context_window_exceeded`, `tool_use`, `stop_sequence` or `refusal`.
    """
    if response["status"] == "incomplete":
        details = response.get("incomplete_details") or {}
        if details.get("limit") == "context_window":
            return "model_context_window_exceeded"
        return "refusal" if details.get("reason") == "content_filter" else "max_tokens"
    if any(item["type"] == "function_call" for item in response["output"]):
        # Also if a stop sequence has ended the text behind the call: clients answer calls for this reason alone.
        return "tool_use"
    return "end_turn" if response.get("stop_sequence") is None else "stop_sequence"


def usage(response: Json) -> dict[str, Any]:
    """Return the usage: input tokens from the cache are counted apart from the others, and web searches are counted."""
    counts = response.get("usage") or {"input_tokens": 0, "output_tokens": 0}
    cached = counts.get("input_tokens_details", {}).get("cached_tokens", 0)
    thinking = counts.get("output_tokens_details", {}).get("reasoning_tokens", 0)
    searches = sum(map(is_search, response.get("output", ())))
    return {
        "input_tokens": counts["input_tokens"] - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": counts["output_tokens"],
        "output_tokens_details": {"thinking_tokens": thinking},
        "server_tool_use": {"web_search_requests": searches, "web_fetch_requests": 0} if searches else None,
    }


def error_body(error: ApiError, request_id: str) -> dict[str, Any]:
    """Return the body of an error in the form of Anthropic's API. The message begins with the path of a wrong value."""
    message = _error_message(error)
    kind = ERROR_TYPES.get(error.status, "api_error")
    details = {"details": {"error_code": NO_THREADS, "unsupported": ["thread"]}} if error.code == NO_THREADS else {}
    return {"type": "error", "error": {"type": kind, "message": message, **details}, "request_id": request_id or None}


def _error_message(error: ApiError) -> str:
    """Return the message of an error, in Anthropic's words where clients read these.

    Claude Code compacts the conversation when a prompt is too long, and leaves out images that cannot be processed. It
    looks for the words `effort parameter` in the error for an effort that the model does not have.
    """
    if error.code == "context_length_exceeded" and (counts := re.search(r"(\d+) tokens of (\d+)", error.message)):
        return f"prompt is too long: {counts[1]} tokens > {counts[2]} maximum"
    message = error.message
    if error.param and error.param not in message:
        message = f"{error.param}: {message}"
    if error.param == "output_config.effort":
        message = f"Invalid effort parameter: {message}"
    is_about_image = "image" in (error.code or "") or TEXT_ONLY in message
    return f"Could not process image: {message}" if is_about_image else message
