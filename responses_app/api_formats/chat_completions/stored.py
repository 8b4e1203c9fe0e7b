"""Stored completions: the body with the parameters of the request, and the messages of the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from responses_app.api_formats.chat_completions.completion import TOOL_CALLS, completion, tool_call
from responses_app.models import Response
from responses_app.validation.base import StrictModel


class UpdateRequest(StrictModel):
    """Schema of `POST /v1/chat/completions/{id}`."""

    metadata: Any


def stored_completion(row: Response, response: Mapping[str, Any]) -> dict[str, Any]:
    """Return the completion of a stored response that has ended, also of a failed one, whose content is what came before."""
    return {
        **completion(response),
        "metadata": row.metadata,
        "request_id": row.request_id,
        "temperature": response["temperature"],
        "top_p": response["top_p"],
        "presence_penalty": response["presence_penalty"],
        "frequency_penalty": response["frequency_penalty"],
    }


def stored_message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an input item as a message of a stored completion."""
    kind = item["type"]
    if kind in TOOL_CALLS:
        return {"id": item["id"], "role": "assistant", "content": None, "tool_calls": [tool_call(item)]}
    if kind == "reasoning":
        text = "".join(part["text"] for part in item.get("content") or ())
        return {"id": item["id"], "role": "assistant", "content": None, "reasoning_content": text}
    if kind != "message":
        return {"id": item["id"], "role": "tool", "tool_call_id": item["call_id"], **_content(item["output"])}
    return {"id": item["id"], "role": item["role"], **_content(item["content"])}


def _content(raw: Any) -> dict[str, Any]:
    """Return the text of a content, and the parts if some are no text."""
    if isinstance(raw, str):
        return {"content": raw, "content_parts": None}
    text = "".join(part.get("text", "") for part in raw)
    parts = None if all("text" in part for part in raw) else [_part(part) for part in raw]
    return {"content": text, "content_parts": parts}


def _part(part: Mapping[str, Any]) -> dict[str, Any]:
    if part["type"] == "input_image":
        return {"type": "image_url", "image_url": {"url": part.get("image_url"), "detail": part.get("detail", "auto")}}
    if part["type"] == "input_file":
        return {"type": "file", "file": {name: part[name] for name in ("file_id", "filename") if name in part}}
    return {"type": "text", "text": part.get("text", part.get("refusal", ""))}
