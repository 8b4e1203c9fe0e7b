"""Request of Chat Completions as a `CreateRequest`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_app.access.model_access import find
from responses_app.api_formats.chat_completions.messages import convert_messages
from responses_app.api_formats.chat_completions.schema import (
    REFUSED,
    AllowedChoice,
    ChatCompletionRequest,
    ChatCustomTool,
    ChatFunctionTool,
    ChatGrammarFormat,
    ChatLocation,
    ChatResponseFormat,
    CustomChoice,
    FunctionChoice,
)
from responses_app.api_formats.client_body import dump_client_body
from responses_app.api_formats.paths import RequestPaths
from responses_app.errors import ApiError, InvalidRequest
from responses_app.models import ApiFormat, ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.schemas import create_response
from responses_app.schemas.create_response import EMPTY
from responses_app.validation.base import check_tools, count_tools, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing, missing_type

# Parameters that Responses has under other names.
FIELDS: Mapping[str, str] = {
    "input": "messages",
    "text.format.type": "response_format.type",
    "text.format": "response_format.json_schema",
    "text.verbosity": "verbosity",
    "reasoning.effort": "reasoning_effort",
    "tool_choice.tools": "tool_choice.allowed_tools.tools",
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
# The same for keys of tools.
INSIDE_TOOLS: Mapping[str, str] = {
    ".type": "",
    ".format.syntax": ".format.grammar.syntax",
    ".format.definition": ".format.grammar.definition",
    ".user_location": ".user_location.approximate",
}
# Words of messages that Responses has in place of those of this format.
WORDS: Mapping[str, str] = {"'input_image'": "'image_url'", "'text.format'": "'response_format'"}
SEARCH = "web_search_options"
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
    "top_k",
    "min_p",
    "repetition_penalty",
    "ignore_eos",
)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """Request of Chat Completions: the request of the response, whether a stream has the usage, and the paths for errors."""

    order: CreateRequest
    include_usage: bool
    paths: RequestPaths

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate an ApiError, as `RequestPaths.translated`. Clients know a prompt that is too long by OpenAI's words."""
        try:
            with self.paths.translated():
                yield
        except ApiError as error:
            counts = re.search(r"\(((?:at least )?\d+) tokens of (\d+)\)", error.message)
            if error.code == "context_length_exceeded" and counts:
                error.message = (
                    f"This model's maximum context length is {counts[2]} tokens. However, your messages resulted in {counts[1]} "
                    "tokens. Please reduce the length of the messages."
                )
            raise


def parse_request(raw: dict[str, Any], key: ApiKey, request_id: str = "") -> ChatRequest:
    """Validate and translate the body. Raises InvalidRequest with a path of the body."""
    for name, reason in REFUSED.items():
        if raw.get(name) not in EMPTY:
            raise InvalidRequest(f"Unsupported parameter: '{name}': {reason}.", param=name, code="unsupported_parameter")
    check_tools(count_tools(raw.get("tools")), ("tools",))
    body = validate(ChatCompletionRequest, {name: value for name, value in raw.items() if name not in REFUSED})
    if body.n not in (None, 1):
        message = f"Unsupported value: 'n' is {body.n}. This server makes one completion for each request."
        raise InvalidRequest(message, param="n", code="unsupported_value")
    effort, path = _effort(body)
    limit_path = "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
    fields_of_body = {**FIELDS, "reasoning.effort": path, "max_output_tokens": limit_path}
    paths = RequestPaths(fields_of_body, INSIDE, INSIDE_TOOLS, WORDS)
    items, paths.items = convert_messages(body.messages)
    fields = _fields(body, effort)
    paths.tools = [
        SEARCH if tool["type"] == "web_search" else f"tools[{index}].{tool['type']}"
        for index, tool in enumerate(fields["tools"] or ())
    ]
    fields |= {"input": items, "store": bool(body.store) or settings.RESPONSES_STORE_API_FORMATS}
    other_fields = {
        "api_format": ApiFormat.CHAT_COMPLETIONS.value,
        "client_body": dump_client_body(raw),
        "max_output_tokens": body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens,
    }
    with paths.translated():
        order = create_response.parse_request(fields, key, request_id=request_id, other_fields=other_fields)
    return ChatRequest(order, bool(body.stream_options and body.stream_options.include_usage), paths)


def _effort(body: ChatCompletionRequest) -> tuple[str | None, str]:
    """Return the effort, and the parameter that sets the effort: `chat_template_kwargs` if there is no `reasoning_effort`."""
    options = body.chat_template_kwargs
    if options is None or body.reasoning_effort is not None:
        return body.reasoning_effort, "reasoning_effort"
    thinks = options.thinking if options.enable_thinking is None else options.enable_thinking
    if thinks is None:
        return None, "reasoning_effort"
    served = find(body.model or settings.RESPONSES_DEFAULT_MODEL)
    # A model that does not reason has no efforts.
    effort = ("medium" if thinks else "none") if served is not None and served.efforts else None
    return (
        effort,
        "chat_template_kwargs.thinking" if options.enable_thinking is None else "chat_template_kwargs.enable_thinking",
    )


def _fields(body: ChatCompletionRequest, effort: str | None) -> dict[str, Any]:
    """Return the body of Responses without the input. Raises InvalidRequest."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in SAME}
    if body.stream_options is not None:
        fields["stream_options"] = {"include_obfuscation": body.stream_options.include_obfuscation}
    if effort is not None:
        fields["reasoning"] = {"effort": effort}
    if body.response_format is not None or body.verbosity is not None:
        fields["text"] = {"format": _format(body.response_format), "verbosity": body.verbosity}
    if body.logprobs:
        fields |= {"include": [create_response.LOGPROBS], "top_logprobs": body.top_logprobs}
    elif body.top_logprobs is not None:
        raise InvalidRequest("'top_logprobs' needs 'logprobs' to be true.", param="top_logprobs", code="invalid_value")
    tools = [_tool(one, ("tools", index)) for index, one in enumerate(body.tools or ())]
    if body.web_search_options is not None:
        tools.append({"type": "web_search", **_search_options(body.web_search_options.model_dump(exclude_none=True))})
    fields["tools"] = tools or None
    fields["tool_choice"] = _choice(body.tool_choice, ("tool_choice",))
    return fields


def _format(response_format: ChatResponseFormat | None) -> dict[str, Any] | None:
    if response_format is None:
        return None
    if response_format.type != "json_schema":
        if response_format.json_schema is not None:
            raise invalid(("response_format", "json_schema"), "it needs the 'type' to be 'json_schema'.")
        return {"type": response_format.type}
    if response_format.json_schema is None:
        raise missing(("response_format", "json_schema"))
    return {"type": "json_schema", **response_format.json_schema.model_dump(exclude_none=True, by_alias=True)}


def _tool(raw: object, loc: Loc) -> dict[str, Any]:
    """Return a tool in the form of Responses. In this format a function without `strict` is not strict."""
    tool = drop_nulls(raw, loc)
    kind = tool.get("type")
    if kind == "function":
        function = validate(ChatFunctionTool, tool, loc).function
        return {"type": kind, "strict": False, **function.model_dump(exclude_none=True, exclude={"cache_control"})}
    if kind == "custom":
        custom = validate(ChatCustomTool, tool, loc).custom.model_dump(exclude_none=True)
        if "grammar" in custom.get("format", {}):
            # A grammar has a level more than in Responses.
            form = validate(ChatGrammarFormat, custom["format"], (*loc, kind, "format"))
            custom["format"] = {**form.grammar, "type": form.type}
        return {"type": kind, **custom}
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    raise invalid_value(json_path((*loc, "type")), kind, "'function', 'custom'")


def _search_options(options: dict[str, Any]) -> dict[str, Any]:
    location = options.get("user_location") or {}
    # The place has a level more than in Responses.
    place = validate(ChatLocation, location, (SEARCH, "user_location")).approximate if "approximate" in location else location
    return {**options, **({"user_location": {"type": "approximate", **place}} if location else {})}


def _choice(raw: Any, loc: Loc) -> Any:
    """Return `tool_choice` in the form of Responses, whose parser reports the faults of a text. Raises InvalidRequest."""
    if not isinstance(raw, dict):
        return raw
    kind = raw.get("type")
    if kind == "allowed_tools":
        allowed = validate(AllowedChoice, raw, loc).allowed_tools
        tools = [_choice(one, (*loc, kind, "tools", index)) for index, one in enumerate(allowed.tools)]
        return {"type": kind, "mode": allowed.mode, "tools": tools}
    if kind == "function":
        return {"type": kind, "name": validate(FunctionChoice, raw, loc).function.name}
    if kind == "custom":
        return {"type": kind, "name": validate(CustomChoice, raw, loc).custom.name}
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    raise invalid_value(json_path((*loc, "type")), kind, "'function', 'custom', 'allowed_tools'")
