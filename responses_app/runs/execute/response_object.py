"""The initial Response object, with all keys in the order of the API, and the usage object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from responses_app.runs.create_request import CreateRequest
from responses_app.runs.models import ServedModel

TOOL_USAGE = {
    "image_gen": {
        "input_tokens": 0,
        "input_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"image_tokens": 0, "text_tokens": 0},
        "total_tokens": 0,
    },
    "web_search": {"num_requests": 0},
}


def initial_response(create_request: CreateRequest, served: ServedModel, uid: str, now: int) -> dict[str, Any]:
    """Return the initial snapshot: in progress, or queued in the background; without output and usage."""
    return {
        "id": uid,
        "object": "response",
        "created_at": now,
        "completed_at": None,
        "status": "queued" if create_request.background else "in_progress",
        "background": create_request.background,
        "error": None,
        "incomplete_details": None,
        "instructions": create_request.instructions,
        "max_output_tokens": create_request.max_output_tokens,
        "max_tool_calls": create_request.echo.get("max_tool_calls"),
        "model": served.name,
        "output": [],
        "parallel_tool_calls": create_request.parallel_tool_calls,
        "previous_response_id": create_request.previous_response_id,
        "prompt_cache_key": create_request.echo.get("prompt_cache_key"),
        "prompt_cache_retention": create_request.echo.get("prompt_cache_retention"),
        "reasoning": _reasoning(create_request.reasoning),
        "safety_identifier": create_request.echo.get("safety_identifier"),
        "service_tier": "auto",
        "store": create_request.store,
        "temperature": served.temperature(create_request.temperature),
        "text": {"format": create_request.format, "verbosity": create_request.echo.get("verbosity") or "medium"},
        "tool_choice": create_request.tool_choice,
        "tool_usage": TOOL_USAGE,
        "tools": list(create_request.tools),
        "top_logprobs": create_request.logprobs or 0,
        "top_p": served.top_p(create_request.top_p),
        "presence_penalty": create_request.presence_penalty,
        "frequency_penalty": create_request.frequency_penalty,
        "truncation": create_request.truncation,
        "usage": None,
        "user": create_request.echo.get("user"),
        "metadata": dict(create_request.metadata),
        "moderation": None,
        "access_programs": create_request.echo.get("access_programs"),
        # Only in responses of a conversation.
        **({"conversation": {"id": create_request.conversation}} if create_request.conversation else {}),
        **({"image": create_request.echo["image"]} if create_request.echo.get("image") else {}),
    }


def tool_usage(items: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the usage of tools by the output `items`: the number of web searches that gave results."""
    searches = sum(1 for item in items if item["type"] == "web_search_call" and _is_answered_search(item))
    return {**TOOL_USAGE, "web_search": {"num_requests": searches}}


def _is_answered_search(item: Mapping[str, Any]) -> bool:
    return bool(item["status"] == "completed" and item["action"]["type"] == "search")


def _reasoning(reasoning: Mapping[str, Any] | None) -> dict[str, Any]:
    options = reasoning or {}
    summary = options.get("summary") if settings.RESPONSES_REASONING_SUMMARY == "copy" else None
    shape = {"effort": options.get("effort"), "summary": summary, "context": options.get("context")}
    return {**shape, **({"mode": options["mode"]} if options.get("mode") else {})}


def usage(prompt: int, cached: int, output: int, reasoning: int) -> dict[str, Any]:
    """Return the usage object in tokens, with all seven numbers: clients require them."""
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + output,
    }
