"""Stored completions: the body with the parameters of the request, and the messages of the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from responses_app.api_formats.chat_completions.completion import TOOL_CALLS, completion, tool_call
from responses_app.models import Response
from responses_app.validation.base import StrictModel, parse_metadata, validate
from responses_app.validation.errors import missing

# Places of items in a message of the assistant: each item comes behind those of smaller places, and a call also behind a call.
PLACES: Final[Mapping[str, int]] = {"reasoning": 0, "message": 1, **dict.fromkeys(TOOL_CALLS, 2)}
CALLS_PLACE: Final = 2
NO_PLACE: Final = 3


class UpdateRequest(StrictModel):
    """Schema of `POST /v1/chat/completions/{id}`."""

    metadata: Any = None


def parse_update(raw: object) -> Mapping[str, str]:
    """Return the new metadata; null stands for none. Raises InvalidRequest."""
    body = validate(UpdateRequest, raw)
    if isinstance(raw, dict) and "metadata" not in raw:
        raise missing(("metadata",))
    return parse_metadata(body.metadata)


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


def stored_messages(items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a request from all its input items. An answer is one message with reasoning, text and calls."""
    messages: list[dict[str, Any]] = []
    place = NO_PLACE
    for item in items:
        before = place
        place = PLACES.get(item["type"], NO_PLACE) if item.get("role", "assistant") == "assistant" else NO_PLACE
        part = _message(item)
        if before < place < NO_PLACE or before == place == CALLS_PLACE:
            calls = messages[-1].pop("tool_calls", []) + part.pop("tool_calls", [])
            messages[-1] |= {key: value for key, value in part.items() if key != "id" and value is not None}
            messages[-1] |= {"tool_calls": calls} if calls else {}
        else:
            messages.append(part)
    return messages


def _message(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of an input item, or a part of one."""
    kind = item["type"]
    if kind in TOOL_CALLS:
        return {"id": item["id"], "role": "assistant", "content": None, "tool_calls": [tool_call(item)]}
    if kind == "reasoning":
        text = "".join(part["text"] for part in item.get("content") or ())
        return {"id": item["id"], "role": "assistant", "content": None, "reasoning_content": text}
    if kind != "message":
        return {"id": item["id"], "role": "tool", "tool_call_id": item["call_id"], **_content(item["output"])}
    content: Any = item["content"]
    refusals = [part["refusal"] for part in content if part["type"] == "refusal"] if isinstance(content, list) else []
    if not refusals:
        return {"id": item["id"], "role": item["role"], **_content(content)}
    texts = [part for part in content if part["type"] != "refusal"]
    shown = _content(texts) if texts else {"content": None, "content_parts": None}
    return {"id": item["id"], "role": item["role"], **shown, "refusal": "".join(refusals)}


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
    return {"type": "text", "text": part.get("text", "")}
