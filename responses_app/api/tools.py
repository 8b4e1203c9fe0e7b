"""Tools and the choice among them: validated and normalised to the form in which the response echoes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from django.conf import settings
from pydantic import Field, ValidationError

from responses_app.api.base import NAME, Strict, given
from responses_app.api.client_items import LocalEnvironment
from responses_app.api.problems import Loc, path, translate, untyped, value, wrong_type
from responses_app.api.strict import conforms, misshapen
from responses_app.dialects import grammars
from responses_app.errors import Invalid

Name = Annotated[str, Field(min_length=1, max_length=64, pattern=NAME)]
ACTIVE = ("function", "custom", "namespace", "shell", "local_shell", "apply_patch", "tool_search")
# Those that a `tool_choice` may name by their type alone.
CHOSEN = ("shell", "apply_patch")
LONGEST_GRAMMAR = 32_768
MODES = ("none", "auto", "required")
# Tool types of the protocol that this server does not run or pass on.
UNSUPPORTED = frozenset(
    {
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "mcp",
        "programmatic_tool_calling",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)


class Function(Strict):
    """A function that the client runs."""

    type: Literal["function"]
    name: Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    output_schema: dict[str, Any] | None = None
    # What these say is how it is here anyway; anything else is refused.
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    allowed_callers: list[Literal["direct"]] = Field(default_factory=list)


class TextFormat(Strict):
    """The `format` of a custom tool that takes any text."""

    type: Literal["text"]


class GrammarFormat(Strict):
    """The `format` of a custom tool whose text follows a grammar."""

    type: Literal["grammar"]
    syntax: Literal["lark", "regex"]
    definition: Annotated[str, Field(max_length=LONGEST_GRAMMAR)]


class Custom(Strict):
    """A tool that the client runs on a text."""

    type: Literal["custom"]
    name: Name
    description: str | None = None
    format: Any = None
    async_: bool = Field(default=False, alias="async")
    defer_loading: bool = False
    allowed_callers: list[Literal["direct"]] = Field(default_factory=list)


class Shell(Strict):
    """The client's shell."""

    type: Literal["shell"]
    environment: LocalEnvironment | None = None
    allowed_callers: list[Literal["direct"]] = Field(default_factory=list)


class LocalShell(Strict):
    """The client's shell in the protocol's first form."""

    type: Literal["local_shell"]


class ApplyPatch(Strict):
    """Changes of the client's files."""

    type: Literal["apply_patch"]
    allowed_callers: list[Literal["direct"]] = Field(default_factory=list)


class ToolSearch(Strict):
    """A search for deferred tools, which the client makes."""

    type: Literal["tool_search"]
    execution: Literal["client"]
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Namespace(Strict):
    """Tools with a name in common."""

    type: Literal["namespace"]
    name: Name
    description: str | None = None
    tools: Annotated[list[Any], Field(min_length=1, max_length=128)]


CLIENT: Mapping[str, type[Strict]] = {
    "shell": Shell,
    "local_shell": LocalShell,
    "apply_patch": ApplyPatch,
    "tool_search": ToolSearch,
}


class Named(Strict):
    """`tool_choice` that forces one tool, and an entry of the allowed ones."""

    type: Literal["function", "custom"]
    name: str


class Allowed(Strict):
    """`tool_choice` that leaves some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[list[Any], Field(min_length=1, max_length=128)]


def read(raw: object, loc: Loc = ("tools",), *, found: bool = False) -> list[dict[str, Any]]:
    """The `tools` of a request, in their echoed form. Raises Invalid, also for a type that is not served: never silence (F9).

    A tool that is deferred needs a search to find it, unless it is one that was `found`.
    """
    if raw is None:
        return []
    if not isinstance(raw, list):
        raise wrong_type(path(loc), "an array", raw)
    tools = [_tool(one, (*loc, index)) for index, one in enumerate(raw)]
    if not found and not any(tool["type"] == "tool_search" for tool in tools):
        _none_deferred(tools, loc)
    seen: set[str] = set()
    for index, tool in enumerate(tools):
        # A model is told a tool of a namespace by both names in one.
        inside = [f"{tool['name']}__{one['name']}" for one in tool["tools"]] if tool["type"] == "namespace" else []
        name_of = tool.get("name") or (tool["type"] if tool["type"] in CLIENT else None)
        for name in [name_of, *inside] if name_of else []:
            if name in seen:
                where = path((*loc, index, "name"))
                raise Invalid(f"Invalid '{where}': the name '{name}' is used twice.", param=where, code="invalid_value")
            seen.add(name)
    return tools


def _none_deferred(tools: Sequence[Mapping[str, Any]], loc: Loc) -> None:
    each = [((*loc, n), tool) for n, tool in enumerate(tools)]
    each += [
        ((*at, "tools", n), one) for at, tool in each if tool["type"] == "namespace" for n, one in enumerate(tool["tools"])
    ]
    for at, tool in each:
        if tool.get("defer_loading") and tool["type"] in ACTIVE:
            where = path((*at, "defer_loading"))
            message = f"Invalid '{where}': a tool with 'defer_loading' needs a tool of type 'tool_search' to be found."
            raise Invalid(message, param=where, code="invalid_value")


def inactive(tools: Sequence[Mapping[str, Any]]) -> list[str]:
    """The types of those that are repeated in the response, and that no model is told (D19)."""
    return sorted({str(tool["type"]) for tool in tools if tool["type"] not in ACTIVE})


def _tool(raw: object, loc: Loc) -> dict[str, Any]:
    raw = given(raw, loc)
    kind = raw.get("type")
    where = path((*loc, "type"))
    if not isinstance(kind, str):
        raise untyped(where, kind)
    if kind in settings.RESPONSES_INACTIVE_TOOLS or (kind == "web_search" and raw.get("external_web_access") is False):
        return raw
    if kind in UNSUPPORTED:
        raise Invalid(
            f"Tools of type '{kind}' are not supported by this server; allowed are {', '.join(ACTIVE)}.",
            param=where,
            code="invalid_value",
        )
    if kind not in ACTIVE:
        raise value(where, kind, ", ".join(f"'{one}'" for one in ACTIVE))
    if kind in CLIENT:
        return _client(raw, loc)
    if kind != "function":
        return (_custom if kind == "custom" else _namespace)(raw, loc)
    try:
        tool = Function.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, Function.model_fields) from error
    return _normal(tool, loc)


def _client(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    model = CLIENT[raw["type"]]
    try:
        tool = model.model_validate(raw).model_dump(exclude_none=True, exclude_defaults=True)
    except ValidationError as error:
        raise translate(error, loc, model.model_fields) from error
    wrong = misshapen(tool.get("parameters") or {})
    if wrong is not None:
        where = path((*loc, "parameters"))
        raise Invalid(f"Invalid schema for 'tool_search': {wrong}", param=where, code="invalid_function_parameters")
    return tool


def _flags(tool: Function | Custom) -> dict[str, bool]:
    """What a tool says of itself beyond its kind, where it does."""
    return {name: True for name, said in (("async", tool.async_), ("defer_loading", tool.defer_loading)) if said}


def _custom(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    try:
        tool = Custom.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, Custom.model_fields) from error
    form = _format(tool.format or {"type": "text"}, (*loc, "format"))
    return {"type": "custom", "name": tool.name, "description": tool.description, "format": form, **_flags(tool)}


def _format(raw: object, loc: Loc) -> dict[str, Any]:
    """What the text of a custom tool is. Raises Invalid, also for a grammar that is none (§3.15)."""
    raw = given(raw, loc)
    model = GrammarFormat if raw.get("type") == "grammar" else TextFormat
    try:
        form = model.model_validate(raw).model_dump()
    except ValidationError as error:
        raise translate(error, loc, model.model_fields) from error
    try:
        grammars.ebnf(form)
    except grammars.BadGrammar as error:
        where = path((*loc, "definition"))
        raise Invalid(f"Invalid '{where}': {error}.", param=where, code="invalid_grammar") from error
    return form


def _namespace(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    try:
        space = Namespace.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, Namespace.model_fields) from error
    inside = read(space.tools, (*loc, "tools"), found=True)
    for index, tool in enumerate(inside):
        if tool["type"] not in ("function", "custom"):
            raise value(path((*loc, "tools", index, "type")), tool["type"], "'function', 'custom'")
    return {"type": "namespace", "name": space.name, "description": space.description, "tools": inside}


def _normal(tool: Function, loc: Loc) -> dict[str, Any]:
    """All keys present; `strict` omitted becomes true where the schema meets the strict rules (responses-api.md §1.5)."""
    parameters = tool.parameters or {}
    problem = conforms(parameters) if tool.parameters is not None else None
    wrong = misshapen(parameters) or (problem if tool.strict else None)
    if wrong is not None:
        where = path((*loc, "parameters"))
        message = f"Invalid schema for function '{tool.name}': {wrong}"
        raise Invalid(message, param=where, code="invalid_function_parameters")
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": tool.strict if tool.strict is not None else tool.parameters is not None and problem is None,
        "output_schema": tool.output_schema,
        **_flags(tool),
    }


def choice(raw: object, tools: Sequence[Mapping[str, Any]]) -> str | dict[str, Any]:
    """The `tool_choice` of a request, checked against its tools. Raises Invalid."""
    if raw is None:
        return "auto"
    if isinstance(raw, str):
        if raw not in MODES:
            raise value("tool_choice", raw, ", ".join(f"'{mode}'" for mode in MODES))
        if raw == "required" and not tools:
            raise Invalid(
                "Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice", code="invalid_value"
            )
        return raw
    if not isinstance(raw, dict):
        raise wrong_type("tool_choice", "a string or an object", raw)
    if raw.get("type") == "allowed_tools":
        return _allowed(raw, tools)
    if raw.get("type") not in ("function", "custom", *CHOSEN):
        raise value("tool_choice.type", raw.get("type"), "'function', 'custom', 'shell', 'apply_patch', 'allowed_tools'")
    return _named(raw, tools, ("tool_choice",))


def _allowed(raw: dict[str, Any], tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Some of the tools, of which the model may or must call. Raises Invalid."""
    try:
        allowed = Allowed.model_validate(raw)
    except ValidationError as error:
        raise translate(error, ("tool_choice",), Allowed.model_fields) from error
    named = [_named(one, tools, ("tool_choice", "tools", index)) for index, one in enumerate(allowed.tools)]
    return {"type": "allowed_tools", "mode": allowed.mode, "tools": named}


def _named(raw: object, tools: Sequence[Mapping[str, Any]], loc: Loc) -> dict[str, Any]:
    raw = given(raw, loc)
    kind = raw.get("type")
    if isinstance(kind, str) and kind in CLIENT and set(raw) == {"type"}:
        return _client_choice(kind, tools)
    try:
        named = Named.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, Named.model_fields) from error
    if (named.type, named.name) not in {(tool["type"], tool.get("name")) for tool in tools}:
        raise Invalid(f"Tool choice '{named.name}' not found in 'tools' parameter.", param="tool_choice", code="invalid_value")
    return {"type": named.type, "name": named.name}


def _client_choice(kind: str, tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if not any(tool["type"] == kind for tool in tools):
        raise Invalid(f"Tool choice '{kind}' not found in 'tools' parameter.", param="tool_choice", code="invalid_value")
    return {"type": kind}
