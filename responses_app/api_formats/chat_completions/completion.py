"""Chat completion of a response that has ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

from responses_app.api_formats.incomplete import incomplete_details

Json: TypeAlias = Mapping[str, Any]
PREFIX: Final = "chatcmpl-"
RESPONSE_PREFIX: Final = "resp_"


def completion_id(uid: str) -> str:
    """Return the id of the completion of the response `uid`."""
    return PREFIX + uid.removeprefix(RESPONSE_PREFIX)


def response_id(uid: str) -> str:
    """Return the id of the response of the completion `uid`."""
    return RESPONSE_PREFIX + uid.removeprefix(PREFIX)


def completion(response: Json) -> dict[str, Any]:
    """Return the completion of a response, which has not failed."""
    return {
        "id": completion_id(response["id"]),
        "object": "chat.completion",
        "created": response["created_at"],
        "model": response["model"],
        "choices": [
            {
                "index": 0,
                "message": message(response["output"]),
                "logprobs": logprobs(response["output"]),
                "finish_reason": finish_reason(response),
                **incomplete_details(response),
            }
        ],
        "usage": usage(response),
        "service_tier": response.get("service_tier"),
        "system_fingerprint": None,
    }


def message(output: Iterable[Json]) -> dict[str, Any]:
    """Return the message of the output items. Items of server tools have no place in this format."""
    texts: list[str] = []
    refusals: list[str] = []
    annotations: list[dict[str, Any]] = []
    reasoning: list[str] = []
    calls: list[dict[str, Any]] = []
    for item in output:
        if item["type"] == "message":
            for part in item["content"]:
                before = sum(map(len, texts))
                (refusals if part["type"] == "refusal" else texts).append(part.get("refusal", part.get("text")))
                annotations += [url_citation(one, before) for one in part.get("annotations", ()) if is_url(one)]
        elif item["type"] == "reasoning":
            reasoning += [part["text"] for part in item.get("content") or ()]
        elif item["type"] in TOOL_CALLS:
            calls.append(tool_call(item))
    return {
        "role": "assistant",
        "content": "".join(texts) if texts or not (calls or refusals) else None,
        "refusal": "".join(refusals) if refusals else None,
        **({"reasoning_content": "".join(reasoning)} if reasoning else {}),
        "annotations": annotations,
        **({"tool_calls": calls} if calls else {}),
    }


def tool_call(item: Json) -> dict[str, Any]:
    """Return a call of a function or a custom tool, with the text of the arguments so far."""
    kind, key = TOOL_CALLS[item["type"]]
    return {"id": item["call_id"], "type": kind, kind: {"name": item["name"], key: item[key]}}


# Kind of call and key of the text by the type of the item.
TOOL_CALLS: Final[Mapping[str, tuple[str, str]]] = {
    "function_call": ("function", "arguments"),
    "custom_tool_call": ("custom", "input"),
}


def is_url(annotation: Json) -> bool:
    """Return whether an annotation is a citation of a web page, the only kind of this format."""
    return bool(annotation["type"] == "url_citation")


def url_citation(annotation: Json, offset: int = 0) -> dict[str, Any]:
    """Return a citation, whose indexes count from the start of the content: `offset` characters come before the part."""
    moved = {name: annotation[name] + offset for name in ("start_index", "end_index")}
    return {"type": "url_citation", "url_citation": {**moved, "title": annotation["title"], "url": annotation["url"]}}


def logprobs(output: Iterable[Json]) -> dict[str, Any] | None:
    """Return the log-probabilities of the content; None without any."""
    tokens = [
        token
        for item in output
        if item["type"] == "message"
        for part in item["content"]
        for token in part.get("logprobs") or ()
    ]
    return {"content": tokens, "refusal": None} if tokens else None


def finish_reason(response: Json) -> str:
    """Return why the completion has ended: `stop`, `length`, `content_filter` or `tool_calls`."""
    details = response.get("incomplete_details") or {}
    if response["status"] == "incomplete":
        return "content_filter" if details.get("reason") == "content_filter" else "length"
    return "tool_calls" if any(item["type"] in TOOL_CALLS for item in response["output"]) else "stop"


def usage(response: Json) -> dict[str, Any] | None:
    """Return the usage under the names of this format; None for a response without usage."""
    counts = response.get("usage")
    if counts is None:
        return None
    return {
        "prompt_tokens": counts["input_tokens"],
        "completion_tokens": counts["output_tokens"],
        "total_tokens": counts["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": counts["input_tokens_details"]["cached_tokens"], "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": counts["output_tokens_details"]["reasoning_tokens"],
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
