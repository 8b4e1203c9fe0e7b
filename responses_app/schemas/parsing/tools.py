"""Tools of a request, validated and normalised to the form that the response repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.conf import settings

from responses_app.errors import InvalidRequest
from responses_app.schemas.json_schema.limits import complexity_problem
from responses_app.schemas.json_schema.strict import shape_problem, strict_problem
from responses_app.schemas.tools import (
    API_SERVER_TOOLS,
    CLIENT,
    MAX_GRAMMAR_LENGTH,
    CustomTextFormat,
    CustomTool,
    FunctionTool,
    GrammarFormat,
    LongNamedFunction,
    NamespaceTool,
)
from responses_app.tools.functions.as_functions import function_name
from responses_app.tools.mcp.request.parsing import parse_mcp_tool
from responses_app.tools.registry import BY_TYPE, SERVER_TOOLS, is_run_by_server, missing_setting, server_types
from responses_app.tools.web_search.declaration import is_cached_search
from responses_app.validation.base import check_tools, count_tools, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, invalid_value, json_path, missing_type, wrong_type

# Servers of a request: a connection is opened to each.
MAX_SERVERS = 32


def check_names(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check that the tools of a request differ in their names, labels and types. Raises InvalidRequest."""
    _check_labels(tools, loc)
    _check_single(tools, loc)
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        inside = [function_name(one["name"], tool["name"]) for one in tool["tools"]] if tool["type"] == "namespace" else []
        name_of = tool.get("name") or (tool["type"] if tool["type"] in CLIENT else None)
        for name in [name_of, *inside] if name_of else []:
            if name in seen:
                raise invalid((*loc, index, "name" if "name" in tool else "type"), f"the name '{name}' is used twice.")
            seen.add(name)


def _check_single(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check that each server tool is declared once. Raises InvalidRequest."""
    for server_tool in SERVER_TOOLS:
        declared = [
            index for index, tool in enumerate(tools) if tool["type"] in server_tool.types and is_run_by_server(tool["type"])
        ]
        if len(declared) > 1:
            raise invalid((*loc, declared[1], "type"), f"the tool '{tools[declared[1]]['type']}' is declared twice.")


def _check_labels(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    """Check the number of MCP servers, and that labels differ and begin no name of a function. Raises InvalidRequest."""
    servers = [(index, tool) for index, tool in enumerate(tools) if tool["type"] == "mcp" and is_run_by_server("mcp")]
    if len(servers) > MAX_SERVERS:
        raise invalid(
            loc, f"too many MCP servers. Expected at most {MAX_SERVERS}, but got {len(servers)}.", "array_above_max_length"
        )
    labels: set[str] = set()
    for index, tool in servers:
        label = tool["server_label"]
        if label in labels:
            raise invalid((*loc, index, "server_label"), f"the label '{label}' is used twice.")
        labels.add(label)
    for index, tool in enumerate(tools):
        label = next((one for one in labels for name in _names(tool) if name.startswith(f"{one}__")), None)
        if label is not None:
            message = f"names that begin with '{label}__' are those of the tools of the MCP server '{label}'."
            raise invalid((*loc, index, "name"), message)


def _names(tool: Mapping[str, Any]) -> list[str]:
    """Return the names of the functions that a tool is presented as."""
    if tool["type"] == "namespace":
        return [function_name(one["name"], tool["name"]) for one in tool["tools"]]
    return [tool["name"]] if tool["type"] in ("function", "custom") else []


ACTIVE = ("function", "custom", "namespace", *CLIENT)
# Fields with credentials, which are not stored and not repeated.
SECRET = frozenset({"authorization", "headers"})


def read(
    raw: object,
    loc: Loc = ("tools",),
    *,
    has_tool_search: bool = False,
    in_item: bool = False,
    function: type[FunctionTool] = FunctionTool,
) -> list[dict[str, Any]]:
    """Parse `tools` to the form that the response repeats. Raises InvalidRequest, also for an unsupported type.

    A deferred tool needs a tool search among `tools`, unless `has_tool_search` is true, because a search has returned the tools.
    An input item has no server tools (`in_item`), because the server stores items and stores no credentials.
    """
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise wrong_type(json_path(loc), "an array", raw)
    check_tools(count_tools(raw), loc)
    tools = [_tool(one, (*loc, index), function) for index, one in enumerate(raw)]
    if not has_tool_search and not any(tool["type"] == "tool_search" for tool in tools):
        _check_none_deferred(tools, loc)
    if in_item:
        _check_no_server_tools(tools, loc)
    check_names(tools, loc)
    return tools


def read_of_any_schema(raw: object) -> list[dict[str, Any]]:
    """Parse the tools of Messages, whose names may be longer and whose schemas may break the rules of strict mode.

    Raises InvalidRequest.
    """
    if not isinstance(raw, list):
        return read(raw)
    strict = {index for index, tool in enumerate(raw) if isinstance(tool, Mapping) and tool.get("strict") is True}
    loose = [{**tool, "strict": False} if index in strict else tool for index, tool in enumerate(raw)]
    tools = read(loose, function=LongNamedFunction)
    return [{**tool, "strict": True} if index in strict else tool for index, tool in enumerate(tools)]


def _check_none_deferred(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    each = [((*loc, n), tool) for n, tool in enumerate(tools)]
    each += [
        ((*at, "tools", n), one) for at, tool in each if tool["type"] == "namespace" for n, one in enumerate(tool["tools"])
    ]
    for at, tool in each:
        if tool.get("defer_loading") and _is_active(tool["type"]):
            raise invalid((*at, "defer_loading"), "a tool with 'defer_loading' needs a tool of type 'tool_search' to be found.")


def _check_no_server_tools(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    for index, tool in enumerate(tools):
        if is_run_by_server(tool["type"]):
            raise invalid((*loc, index, "type"), f"a tool of type '{tool['type']}' is allowed in 'tools' of the request only.")


def _is_active(kind: str) -> bool:
    return kind in ACTIVE or is_run_by_server(kind)


def active_types() -> list[str]:
    """Return the tool types that a request may have and the model is offered."""
    return [*ACTIVE, *server_types()]


def inactive_types(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the types of the tools that the response repeats but the model is not offered."""
    return sorted({str(tool["type"]) for tool in tools if not _is_active(tool["type"]) or is_cached_search(tool)})


def _tool(raw: object, loc: Loc, function: type[FunctionTool] = FunctionTool) -> dict[str, Any]:
    raw = drop_nulls(raw, loc)
    kind = raw.get("type")
    if not isinstance(kind, str):
        raise missing_type(loc, kind)
    if (kind in settings.RESPONSES_INACTIVE_TOOLS and kind not in ACTIVE) or _is_codex_search(raw):
        return {key: value for key, value in raw.items() if key not in SECRET}
    if is_run_by_server(kind):
        return (BY_TYPE[kind].parse if kind in BY_TYPE else parse_mcp_tool)(raw, loc)
    allowed, where = active_types(), json_path((*loc, "type"))
    setting = missing_setting(kind)
    if setting is not None:
        message = f"Tools of type '{kind}' are not available: the operator of this server has not configured {setting}."
        raise InvalidRequest(message, param=where, code="invalid_value")
    if kind in API_SERVER_TOOLS:
        raise InvalidRequest(
            f"Tools of type '{kind}' are not supported by this server; allowed are {', '.join(allowed)}.",
            param=where,
            code="invalid_value",
        )
    if kind not in ACTIVE:
        raise invalid_value(where, kind, allowed)
    if kind in CLIENT:
        return _client(raw, loc)
    if kind != "function":
        return (_custom if kind == "custom" else _namespace)(raw, loc)
    tool = validate(function, raw, loc)
    return _normalize(tool, loc)


def _client(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    model = CLIENT[raw["type"]]
    tool = validate(model, raw, loc).model_dump(exclude_none=True, exclude_defaults=True)
    wrong = shape_problem(tool.get("parameters") or {}) or complexity_problem(tool.get("parameters") or {})
    if wrong is not None:
        where = json_path((*loc, "parameters"))
        raise InvalidRequest(f"Invalid schema for 'tool_search': {wrong}", param=where, code="invalid_function_parameters")
    # As in OpenAI's API.
    return {"execution": "server", **tool} if tool["type"] == "tool_search" else tool


def _flags(tool: FunctionTool | CustomTool) -> dict[str, bool]:
    """Return the flags `async` and `defer_loading` that are set."""
    return {name: True for name, is_set in (("async", tool.async_), ("defer_loading", tool.defer_loading)) if is_set}


def _is_codex_search(raw: Mapping[str, Any]) -> bool:
    """Return True for the web search tool that Codex adds to every request, where the server runs no such tool.

    Rejecting the tool would reject all of Codex.
    """
    is_codex = raw["type"] == "web_search" and isinstance(raw.get("external_web_access"), bool)
    return is_codex and (not is_run_by_server("web_search") or is_cached_search(raw))


def _custom(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    tool = validate(CustomTool, raw, loc)
    form = _format(tool.format or {"type": "text"}, (*loc, "format"))
    return {"type": "custom", "name": tool.name, "description": tool.description, "format": form, **_flags(tool)}


def _format(raw: object, loc: Loc) -> dict[str, Any]:
    """Parse the format of a custom tool. Raises InvalidRequest. `runs.prepare.grammars` compiles grammars later."""
    raw = drop_nulls(raw, loc)
    model = GrammarFormat if raw.get("type") == "grammar" else CustomTextFormat
    form = validate(model, raw, loc).model_dump()
    length = len(form.get("definition", ""))
    if length > MAX_GRAMMAR_LENGTH:
        raise invalid(
            (*loc, "definition"), f"the grammar has {length} characters. The limit is {MAX_GRAMMAR_LENGTH}.", "invalid_grammar"
        )
    return form


def _namespace(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    space = validate(NamespaceTool, raw, loc)
    inside = read(space.tools, (*loc, "tools"), has_tool_search=True)
    for index, tool in enumerate(inside):
        if tool["type"] not in ("function", "custom"):
            raise invalid_value(json_path((*loc, "tools", index, "type")), tool["type"], "'function', 'custom'")
    return {"type": "namespace", "name": space.name, "description": space.description, "tools": inside}


def _normalize(tool: FunctionTool, loc: Loc) -> dict[str, Any]:
    """Fill in all keys of a function. An absent `strict` is true for a schema that follows the rules of strict mode."""
    parameters = tool.parameters or {}
    problem = strict_problem(parameters) if tool.parameters is not None else None
    wrong = shape_problem(parameters) or (problem if tool.strict else None) or complexity_problem(parameters)
    if wrong is not None:
        where = json_path((*loc, "parameters"))
        message = f"Invalid schema for function '{tool.name}': {wrong}"
        raise InvalidRequest(message, param=where, code="invalid_function_parameters")
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict if tool.strict is not None else tool.parameters is not None and problem is None,
        "output_schema": tool.output_schema,
        **_flags(tool),
    }
