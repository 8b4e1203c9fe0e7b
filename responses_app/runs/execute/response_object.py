"""The initial Response object, with all its keys in the order in which they are sent, and the usage object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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


def initial_response(order: CreateRequest, served: ServedModel, uid: str, now: int) -> dict[str, Any]:
    """Return the initial snapshot: in progress, or queued in the background; without output and usage."""
    return {
        "id": uid,
        "object": "response",
        "created_at": now,
        "completed_at": None,
        "status": "queued" if order.background else "in_progress",
        "background": order.background,
        "error": None,
        "incomplete_details": None,
        "instructions": order.instructions,
        "max_output_tokens": order.max_output_tokens,
        "max_tool_calls": order.echo.get("max_tool_calls"),
        "model": served.name,
        "output": [],
        "parallel_tool_calls": order.parallel_tool_calls,
        "previous_response_id": order.previous_response_id,
        "prompt_cache_key": order.echo.get("prompt_cache_key"),
        "prompt_cache_retention": order.echo.get("prompt_cache_retention"),
        "reasoning": _reasoning(order.reasoning),
        "safety_identifier": order.echo.get("safety_identifier"),
        "service_tier": "auto",
        "store": order.store,
        "temperature": served.temperature(order.temperature),
        "text": {"format": order.format, "verbosity": order.echo.get("verbosity") or "medium"},
        "tool_choice": order.tool_choice,
        "tool_usage": TOOL_USAGE,
        "tools": list(order.tools),
        "top_logprobs": order.logprobs or 0,
        "top_p": served.top_p(order.top_p),
        "presence_penalty": order.presence_penalty,
        "frequency_penalty": order.frequency_penalty,
        "truncation": order.truncation,
        "usage": None,
        "user": order.echo.get("user"),
        "metadata": dict(order.metadata),
        "moderation": None,
        "access_programs": order.echo.get("access_programs"),
        # Only in responses of a conversation.
        **({"conversation": {"id": order.conversation}} if order.conversation else {}),
        **({"image": order.echo["image"]} if order.echo.get("image") else {}),
    }


def _reasoning(reasoning: Mapping[str, Any] | None) -> dict[str, Any]:
    given = reasoning or {}
    shape = {"effort": given.get("effort"), "summary": given.get("summary"), "context": given.get("context")}
    return {**shape, **({"mode": given["mode"]} if given.get("mode") else {})}


def usage(prompt: int, cached: int, output: int, reasoning: int) -> dict[str, Any]:
    """Return the usage object in tokens, with all seven numbers: clients require them."""
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": prompt + output,
    }
