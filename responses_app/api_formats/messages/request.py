"""Request of Messages as a `CreateRequest`."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from responses_app.access.model_access import find
from responses_app.api_formats.client_body import dump_client_body
from responses_app.api_formats.messages.client_tools import CLIENT_TOOLS, KnownTool, client_tool
from responses_app.api_formats.messages.input_items import InputItems, check_end
from responses_app.api_formats.messages.mcp_toolsets import TOOLSET, mcp_tools
from responses_app.api_formats.messages.message import NO_THREADS
from responses_app.api_formats.messages.schema import (
    REFUSED,
    ClientTool,
    CodeTool,
    JsonOutput,
    MessagesRequest,
    SearchTool,
    ToolChoice,
)
from responses_app.api_formats.messages.tool_changes import Entry, changed_tools
from responses_app.api_formats.messages.unread import check_budget, check_edits
from responses_app.api_formats.paths import RequestPaths
from responses_app.errors import InvalidRequest
from responses_app.models import ApiFormat, ApiKey
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare import encrypted_content
from responses_app.schemas import create_response
from responses_app.validation.base import check_tools, count_tools, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing

_SCHEMA_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
# Parameters that Responses has under other names.
FIELDS: Mapping[str, str] = {
    "max_output_tokens": "max_tokens",
    "input": "messages",
    "stop": "stop_sequences",
    "text.format": "output_config.format",
    "reasoning.effort": "output_config.effort",
}
# Keys of items that Responses has under other names.
INSIDE: Mapping[str, str] = {
    ".call_id": ".id",
    ".arguments": ".input",
    ".output": ".content",
    ".image_url": ".source",
    ".file_data": ".source",
    ".file_url": ".source.url",
    ".file_id": ".source.file_id",
    ".encrypted_content": "",
    ".code": ".input.code",
    ".action.query": ".input.query",
    ".server_label": ".server_name",
    ".content": "",
}
# The same for keys of tools.
INSIDE_TOOLS: Mapping[str, str] = {
    ".filters": "",
    ".parameters": ".input_schema",
    ".server_label": ".name",
    ".server_url": ".url",
    ".authorization": ".authorization_token",
    ".allowed_tools": ".tool_configuration.allowed_tools",
}
# Words of messages that Responses has in place of those of this format.
WORDS: Mapping[str, str] = {
    "'input_image'": "'image'",
    "Tool choice 'required' must": "Tool choice 'any' must",
    "a base64-encoded data URL of a document (e.g. 'data:application/pdf;base64,aGVsbG8=')": (
        "the 'media_type' of a document (e.g. 'application/pdf')"
    ),
    "a base64-encoded data URL with an image MIME type": "base64-encoded 'data' of an image",
    "unsupported MIME type": "unsupported media type",
    "The data URL has": "The 'data' has",
    "Expected a data URL, or an https URL": "Expected an https URL",
    "send them as data URLs": "send them in a 'source' of the type 'base64'",
    "send the file in 'file_data'": "send the file in a 'source' of the type 'base64'",
}
# Beginnings of the types of tools that the server runs, and the types of Responses.
SERVER_TOOLS: Mapping[str, str] = {"web_search_": "web_search", "code_execution_": "code_interpreter"}
# Beginnings of the types of tools that this server refuses, with the reason.
REFUSED_TOOLS: Mapping[str, str] = {
    "web_fetch_": "this server opens pages as a part of its web search alone, 'web_search_20250305'",
    "advisor_": "a request runs on the model that it names, and no other model advises it",
    "computer_toolset_": "this server knows the computer as the single tool 'computer_20251124'",
    "browser_toolset_": "this server does not know the tools of a browser; declare each with its 'input_schema'",
}
# Smallest budgets of reasoning tokens for the levels of effort, the largest one first.
BUDGETS = ((16_384, "high"), (4_096, "medium"), (0, "low"))


@dataclass(frozen=True, slots=True)
class ParsedMessages:
    """Request of Messages: the request of the response, whether the reasoning is shown, and the paths for errors."""

    order: CreateRequest
    shows_thinking: bool
    paths: RequestPaths


def parse_request(raw: dict[str, Any], key: ApiKey, request_id: str = "", *, needs_limit: bool = True) -> ParsedMessages:
    """Validate and translate the body. Raises InvalidRequest with a path of the body.

    Without `needs_limit`, as for counting tokens, `max_tokens` may be absent, and an answer may be the end.
    """
    for name, reason in REFUSED.items():
        if raw.get(name) not in (None, []):
            code = NO_THREADS if name == "thread" else "unsupported_parameter"
            raise InvalidRequest(f"Unsupported parameter: '{name}': {reason}.", param=name, code=code)
    check_tools(count_tools(raw.get("tools")), ("tools",))
    body = validate(MessagesRequest, {name: value for name, value in raw.items() if name not in REFUSED})
    check_edits(body.context_management)
    check_budget(body.output_config.task_budget if body.output_config else None)
    if needs_limit and body.max_tokens is None:
        raise missing(("max_tokens",))
    inputs = InputItems(spaced=_is_spaced(body.model))
    inputs.add_system(body.system)
    inputs.add(body.messages)
    if needs_limit:
        check_end(body.messages)
    effort = inputs.effort or (body.output_config.effort if body.output_config else None)
    names = FIELDS if body.output_format is None else {**FIELDS, "text.format": "output_format"}
    paths = RequestPaths(names, INSIDE, INSIDE_TOOLS, WORDS)
    entries, added = changed_tools(body.tools or (), inputs.tool_changes)
    tools, paths.tools = _tools(body, entries, inputs.loaded_tools | added)
    paths.items, paths.parts = inputs.paths, inputs.parts
    with paths.translated():
        order = create_response.parse_request(
            {**_fields(body, effort, entries), "tools": tools or None, "input": inputs.items},
            key,
            request_id=request_id,
            any_schema=True,
            other_fields={
                "api_format": ApiFormat.MESSAGES.value,
                "client_body": dump_client_body(raw),
                "max_output_tokens": body.max_tokens,
            },
        )
    shows = body.thinking is not None and body.thinking.type != "disabled"
    return ParsedMessages(order, shows, paths)


def _schema_name(schema: Mapping[str, Any]) -> str:
    """Return the title of a schema, which clients of OpenAI send as the name, or else `output`."""
    title = schema.get("title")
    return title if isinstance(title, str) and re.fullmatch(_SCHEMA_NAME, title) else "output"


def _fields(body: MessagesRequest, effort: str | None, entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the body of Responses without the input and the tools. Raises InvalidRequest.

    `effort` is that of a message or of the body.
    """
    output, choice = _output_format(body), body.tool_choice
    fields: dict[str, Any] = {
        "model": body.model,
        "store": settings.RESPONSES_STORE_API_FORMATS,
        "stream": body.stream,
        "stop": body.stop_sequences or None,
        "temperature": body.temperature,
        "top_p": body.top_p,
        "top_k": body.top_k,
        "seed": body.seed,
        "reasoning": _reasoning(body, effort),
        "max_tool_calls": _max_uses(entries, body.mcp_servers or ()),
        "include": [encrypted_content.INCLUDE, "code_interpreter_call.outputs", "web_search_call.results"],
    }
    if output is not None:
        fields["text"] = {"format": {"type": "json_schema", "name": _schema_name(output.schema_), "schema": output.schema_}}
    if body.metadata is not None and body.metadata.user_id is not None:
        fields["metadata"] = {"user_id": body.metadata.user_id}
    if choice is not None:
        fields |= _choice(choice, [tool for tool, _ in entries])
    return fields


def _output_format(body: MessagesRequest) -> JsonOutput | None:
    """Return the format of the output, from either of the two names. Raises InvalidRequest for both."""
    named = body.output_config.format if body.output_config else None
    if named is not None and body.output_format is not None:
        message = "Mutually exclusive parameters: 'output_format' and 'output_config.format'. Send the latter alone."
        raise InvalidRequest(message, param="output_format", code="mutually_exclusive_parameters")
    return named or body.output_format


def _reasoning(body: MessagesRequest, effort: str | None) -> dict[str, Any] | None:
    """Return the effort: the level of the request, or the level that `thinking` amounts to. Raises InvalidRequest."""
    thinking = body.thinking
    if thinking is not None and thinking.type == "disabled":
        if thinking.budget_tokens is not None:
            raise invalid(("thinking", "budget_tokens"), "it cannot be used with the 'type' 'disabled'.")
        effort = _least_effort(body.model or settings.RESPONSES_DEFAULT_MODEL, effort)
    elif effort is None and thinking is not None and thinking.budget_tokens is not None:
        effort = next(level for least, level in BUDGETS if thinking.budget_tokens >= least)
    return None if effort is None else {"effort": effort}


def _least_effort(model: str, effort: str | None) -> str:
    """Return `none`, or for a model that always reasons `effort`, by default the lowest effort that the model has."""
    served = find(model)
    efforts = served.efforts if served is not None else ()
    return "none" if not efforts or "none" in efforts else effort or efforts[0]


def _is_spaced(model: str | None) -> bool:
    """Return True if the model writes JSON with blanks after commas and colons."""
    served = find(model or settings.RESPONSES_DEFAULT_MODEL)
    white_space = served.defaults.json_whitespace if served is not None else None
    return (white_space or settings.RESPONSES_JSON_WHITESPACE) == "spaced"


def _tools(body: MessagesRequest, entries: Sequence[Entry], loaded: Container[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the tools in the form of Responses, and the path of each tool in the request. Raises InvalidRequest.

    A tool with `defer_loading` is left out unless it is one of the `loaded` tools, or a search that the server would run is there.
    """
    tools: list[dict[str, Any]] = []
    paths: list[str] = []
    is_searched = any(map(_is_hosted_search, entries))
    for one, loc in entries:
        if one.get("type") == TOOLSET:
            continue
        if _is_hosted_search((one, loc)):
            validate(KnownTool, one, loc)
            continue
        tool = _tool(one, loc)
        if is_searched or not one.get("defer_loading") or one.get("name") in loaded:
            tools.append(tool)
            paths.append(json_path(loc))
    for server, loc in mcp_tools(body.tools or (), body.mcp_servers or ()):
        tools.append(server)
        paths.append(json_path(loc))
    return tools, paths


def _is_hosted_search(entry: Entry) -> bool:
    return str(entry[0].get("type")).startswith("tool_search_tool_")


def _tool(raw: object, loc: Loc) -> dict[str, Any]:
    """Return a tool in the form of Responses. Raises InvalidRequest for a tool that this server does not run."""
    tool = drop_nulls(raw, loc)
    kind = str(tool.get("type", "custom"))
    if kind == "custom":
        fields = validate(ClientTool, tool, loc)
        return {
            "type": "function",
            "name": fields.name,
            "description": fields.description,
            "parameters": fields.input_schema,
            "strict": bool(fields.strict),
        }
    if kind.startswith("web_search_"):
        return _web_search(validate(SearchTool, tool, loc), loc)
    if kind.startswith("code_execution_"):
        validate(CodeTool, tool, loc)
        return {"type": "code_interpreter", "container": {"type": "auto"}}
    if kind in CLIENT_TOOLS:
        return client_tool(tool, loc)
    if reason := next((reason for prefix, reason in REFUSED_TOOLS.items() if kind.startswith(prefix)), None):
        path = json_path((*loc, "type"))
        raise InvalidRequest(f"Unsupported value: '{kind}': {reason}.", param=path, code="unsupported_value")
    allowed = ("custom", "web_search_20250305", "code_execution_20250522", TOOLSET, *CLIENT_TOOLS)
    raise invalid_value(json_path((*loc, "type")), kind, allowed)


def _web_search(search: SearchTool, loc: Loc) -> dict[str, Any]:
    allowed, blocked = search.allowed_domains or None, search.blocked_domains or None
    if allowed and blocked:
        raise invalid((*loc, "blocked_domains"), "it cannot be used together with 'allowed_domains'.")
    filters = {"allowed_domains": allowed, "blocked_domains": blocked} if allowed or blocked else None
    return {"type": "web_search", "filters": filters, "user_location": search.user_location or None}


def _max_uses(entries: Sequence[Entry], servers: Sequence[object]) -> int | None:
    """Return `max_uses` of the web search as the limit of calls of all server tools. Raises InvalidRequest if there are others."""
    limit, loc = next(((tool["max_uses"], loc) for tool, loc in entries if tool.get("max_uses")), (None, ()))
    count = sum(str(tool.get("type")).startswith(tuple(SERVER_TOOLS)) for tool, _ in entries) + len(servers)
    if limit is not None and count > 1:
        raise invalid((*loc, "max_uses"), "it needs the web search to be the only tool that the server runs.")
    return limit


def _choice(choice: ToolChoice, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return `tool_choice` and `parallel_tool_calls`. Raises InvalidRequest."""
    if choice.type == "tool" and choice.name is None:
        raise missing(("tool_choice", "name"))
    if choice.type != "tool" and choice.name is not None:
        raise invalid(("tool_choice", "name"), "it needs the 'type' to be 'tool'.")
    modes: Mapping[str, Any] = {"auto": "auto", "any": "required", "none": "none"}
    kind = next((str(tool.get("type")) for tool in tools if tool.get("name") == choice.name), "custom")
    server_type = next((ours for prefix, ours in SERVER_TOOLS.items() if kind.startswith(prefix)), None)
    named = {"type": "function", "name": choice.name} if server_type is None else {"type": server_type}
    return {"tool_choice": modes.get(choice.type, named), "parallel_tool_calls": not choice.disable_parallel_tool_use}
