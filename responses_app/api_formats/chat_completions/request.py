"""Request of Chat Completions as a `CreateRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from responses_app.api_formats.chat_completions.messages import convert_messages
from responses_app.api_formats.chat_completions.schema import (
    REFUSED,
    ChatCompletionRequest,
    ChatCustomTool,
    ChatFunctionTool,
    ChatResponseFormat,
)
from responses_app.api_formats.client_body import dump_client_body
from responses_app.api_formats.paths import RequestPaths
from responses_app.errors import InvalidRequest
from responses_app.models import ApiFormat, ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.schemas import create_response
from responses_app.schemas.create_response import EMPTY
from responses_app.validation.base import drop_nulls, validate
from responses_app.validation.errors import Loc, invalid_value, json_path, missing, missing_type

# Parameters that Responses has under other names.
FIELDS: Mapping[str, str] = {
    "input": "messages",
    "text.format.type": "response_format.type",
    "text.format": "response_format.json_schema",
    "text.verbosity": "verbosity",
    "reasoning.effort": "reasoning_effort",
}
# Keys of items that Responses has under other names.
INSIDE: Mapping[str, str] = {
    ".call_id": ".id",
    ".arguments": ".function.arguments",
    ".output": ".content",
    ".image_url": ".image_url.url",
    ".detail": ".image_url.detail",
    ".file_id": ".file.file_id",
    ".file_data": ".file.file_data",
    ".filename": ".file.filename",
}
# Fields with the name and the meaning that they have in Responses.
SAME = (
    "model",
    "stream",
    "metadata",
    "parallel_tool_calls",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "seed",
    "stop",
    "logit_bias",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "prompt_cache_options",
    "service_tier",
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Request of Chat Completions: the request of the response, whether a stream has the usage, and the paths for errors."""

    order: CreateRequest
    include_usage: bool
    paths: RequestPaths


def parse_request(raw: dict[str, Any], key: ApiKey, request_id: str = "") -> ChatRequest:
    """Validate the body and translate it. Raises InvalidRequest with a path of the body."""
    for name, reason in REFUSED.items():
        if raw.get(name) not in EMPTY:
            raise InvalidRequest(f"Unsupported parameter: '{name}': {reason}.", param=name, code="unsupported_parameter")
    body = validate(ChatCompletionRequest, {name: value for name, value in raw.items() if name not in REFUSED})
    if body.n not in (None, 1):
        message = f"Unsupported value: 'n' is {body.n}. This server makes one completion for each request."
        raise InvalidRequest(message, param="n", code="unsupported_value")
    paths = RequestPaths(FIELDS, INSIDE)
    items, paths.items = convert_messages(body.messages)
    with paths.translated():
        order = create_response.parse_request({**_fields(body), "input": items}, key, request_id=request_id)
    limit = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    stored = bool(body.store) or settings.RESPONSES_STORE_API_FORMATS
    order = replace(
        order,
        api_format=ApiFormat.CHAT_COMPLETIONS.value,
        client_body=dump_client_body(raw),
        store=stored,
        max_output_tokens=limit,
    )
    return ChatRequest(order, bool(body.stream_options and body.stream_options.include_usage), paths)


def _fields(body: ChatCompletionRequest) -> dict[str, Any]:
    """Return the body of Responses without the input. Raises InvalidRequest."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in SAME}
    if body.stream_options is not None:
        fields["stream_options"] = {"include_obfuscation": body.stream_options.include_obfuscation}
    if body.reasoning_effort is not None:
        fields["reasoning"] = {"effort": body.reasoning_effort}
    fields["text"] = {"format": _format(body.response_format), "verbosity": body.verbosity}
    if body.logprobs:
        fields |= {"include": [create_response.LOGPROBS], "top_logprobs": body.top_logprobs}
    elif body.top_logprobs is not None:
        raise InvalidRequest("'top_logprobs' needs 'logprobs' to be true.", param="top_logprobs", code="invalid_value")
    fields["tools"] = [_tool(one, ("tools", index)) for index, one in enumerate(body.tools or ())]
    if body.web_search_options is not None:
        fields["tools"].append({"type": "web_search", **_search_options(body.web_search_options.model_dump(exclude_none=True))})
    fields["tool_choice"] = _choice(body.tool_choice, ("tool_choice",))
    return fields


def _format(response_format: ChatResponseFormat | None) -> dict[str, Any] | None:
    if response_format is None or response_format.type != "json_schema":
        return None if response_format is None else {"type": response_format.type}
    if response_format.json_schema is None:
        raise missing(("response_format", "json_schema"))
    return {"type": "json_schema", **response_format.json_schema.model_dump(exclude_none=True, by_alias=True)}


def _tool(raw: object, loc: Loc) -> dict[str, Any]:
    """Return a tool in the form of Responses. In this format a function without `strict` is not strict."""
    tool = drop_nulls(raw, loc)
    kind = tool.get("type")
    if kind == "function":
        function = validate(ChatFunctionTool, tool, loc).function
        return {"type": kind, "strict": False, **function.model_dump(exclude_none=True)}
    if kind == "custom":
        custom = validate(ChatCustomTool, tool, loc).custom.model_dump(exclude_none=True)
        form = custom.get("format") or {}
        # A grammar has a level more than in Responses.
        grammar = {"format": {"type": "grammar", **form["grammar"]}} if isinstance(form.get("grammar"), dict) else {}
        return {"type": kind, **custom, **grammar}
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    raise invalid_value(json_path((*loc, "type")), kind, "'function', 'custom'")


def _search_options(options: dict[str, Any]) -> dict[str, Any]:
    location = options.get("user_location") or {}
    # The place has a level more than in Responses.
    place = location.get("approximate", location)
    return {**options, **({"user_location": {"type": "approximate", **place}} if location else {})}


def _choice(raw: Any, loc: Loc) -> Any:
    """Return `tool_choice` in the form of Responses, whose parser reports what is wrong. Raises InvalidRequest."""
    if not isinstance(raw, dict):
        return raw
    choice = drop_nulls(raw, loc)
    kind = choice.get("type")
    if kind == "allowed_tools":
        allowed = drop_nulls(choice.get(kind, {}), (*loc, kind))
        tools = allowed.get("tools")
        return {**allowed, "type": kind, "tools": [_choice(one, loc) for one in tools] if isinstance(tools, list) else tools}
    if kind in ("function", "custom"):
        named = drop_nulls(choice[kind], (*loc, kind)) if kind in choice else {}
        if "name" not in named:
            raise missing((*loc, kind, "name"))
        return {"type": kind, "name": named["name"]}
    raise invalid_value(json_path((*loc, "type")), kind, "'function', 'custom', 'allowed_tools'")
