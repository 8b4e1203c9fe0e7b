"""Builders of xgrammar structural tags, as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.constraints.bounds import ANY_WHITE_SPACE, SPACED_WHITE_SPACE, WHITE_SPACE
from responses_app.dialects.constraints.schema_cost import schema_to_follow, with_followed_schemas
from responses_app.dialects.schema_limits import SchemaLimits
from responses_app.dialects.toolset import Tool
from responses_app.engine_interface import Constraint

Format: TypeAlias = dict[str, Any]
_PLAIN = frozenset(
    {"$schema", "type", "properties", "required", "additionalProperties", "items", "enum", "title", "description", "default"}
)


def literal(value: str) -> Format:
    """Match exactly `value`, special tokens by text: in xgrammar 0.2.8 token-level formats share masks by mistake."""
    return {"type": "const_string", "value": value}


def regex(pattern: str) -> Format:
    """Match a regular expression."""
    return {"type": "regex", "pattern": pattern}


def any_text(*excludes: str) -> Format:
    """Match any text without the strings in `excludes`."""
    return {"type": "any_text", "excludes": list(excludes)}


def json_value(schema: Mapping[str, Any] | bool, white_space: int = SPACED_WHITE_SPACE) -> Format:
    """Match JSON of a schema, keys in schema order, at most `white_space` characters of white space in a row.

    The limit stops endless white space of weak models. The default is for calls: models write `{"city": "Oslo"}`, as their chat
    templates do, so a blank may follow a comma or a colon.
    """
    json_schema = schema if isinstance(schema, bool) else dict(schema)
    return {"type": "json_schema", "json_schema": json_schema, "max_whitespace_cnt": white_space}


def sequence(*elements: Format) -> Format:
    """Match the elements in order."""
    return {"type": "sequence", "elements": list(elements)}


def one_of(elements: Sequence[Format]) -> Format:
    """Match any of the elements."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def optional(content: Format) -> Format:
    """Match the content or nothing."""
    return {"type": "optional", "content": content}


def tag(begin: str, content: Format, *ends: str) -> Format:
    """Match content between two literal texts; the second is any of `ends`."""
    return {"type": "tag", "begin": begin, "content": content, "end": ends[0] if len(ends) == 1 else list(ends)}


def tags(formats: Sequence[Format], separator: str, *, only_one: bool) -> Format:
    """Match at least a single tag of `formats`, repeated with the separator in between."""
    return {
        "type": "tags_with_separator",
        "tags": list(formats),
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": only_one,
    }


def triggered(triggers: Sequence[str], formats: Sequence[Format], *excludes: str, only_one: bool) -> Format:
    """Match free text without the strings in `excludes`; text beginning with a trigger must match a tag of `formats`."""
    tag_json: Format = {
        "type": "triggered_tags",
        "triggers": list(triggers),
        "tags": list(formats),
        "stop_after_first": only_one,
    }
    return {**tag_json, "excludes": list(excludes)} if excludes else tag_json


def constraint(content: Format) -> Constraint:
    """Create a constraint of the whole output up to the stop token, which no grammar may include."""
    return Constraint("structural_tag", {"type": "structural_tag", "format": content})


def arguments(tool: Tool) -> Format:
    """Match the arguments of a call: by the schema if strict, else by `schema_to_follow`.

    A tool with a grammar has a single argument `input` that matches the grammar.
    """
    if tool.get("grammar"):
        return sequence(literal('{"input": "'), {"type": "grammar", "grammar": tool["grammar"]}, literal('"}'))
    schema = _argument_schema(tool)
    return json_value({**schema, "type": "object"} if schema.get("type", "object") == "object" else {"type": "object"})


def limit_arguments(tools: Sequence[Tool], limits: SchemaLimits) -> list[Tool]:
    """Copy tools, with limits in the parameters, which arguments then match by schema."""
    tools = with_followed_schemas(tools)
    return [{**tool, "parameters": limits.limit(_argument_schema(tool)), "strict": True} for tool in tools]


def _argument_schema(tool: Tool) -> Mapping[str, Any]:
    return tool.get("parameters") or {} if tool.get("strict") else schema_to_follow(tool)


def is_plain(schema: object) -> bool:
    """Return True if a schema uses only keywords that every grammar compiler supports."""
    if not isinstance(schema, Mapping) or not set(schema) <= _PLAIN:
        return False
    if not isinstance(schema.get("type", "object"), str) or schema.get("additionalProperties") not in (None, False, True):
        return False
    properties = schema.get("properties", {})
    children = [*properties.values()] if isinstance(properties, Mapping) else [None]
    return all(map(is_plain, [*children, *([schema["items"]] if "items" in schema else [])]))


def text_format(turn: Turn) -> Format | None:
    """Return the format required by `text.format`, None for free text. Raises UnsupportedInput."""
    kind = turn.format.get("type", "text")
    white_space = WHITE_SPACE[turn.json_whitespace]
    if kind == "text":
        return None
    if kind == "json_object":
        return json_value(turn.schema_limits.any_object, white_space)
    if kind == "json_schema" and isinstance(turn.format.get("schema"), Mapping):
        return json_value(turn.schema_limits.limit(turn.format["schema"]), white_space)
    raise UnsupportedInput(f"Invalid value: {kind!r}.", "text.format.type", "invalid_value")


def widen_white_space(value: Any) -> Any:
    """Copy a structural tag; each JSON schema format allows the white space of the setting `any`."""
    if isinstance(value, Mapping):
        copied = {key: widen_white_space(child) for key, child in value.items()}
        return {**copied, "max_whitespace_cnt": ANY_WHITE_SPACE} if "max_whitespace_cnt" in value else copied
    return [widen_white_space(child) for child in value] if isinstance(value, list) else value


def not_yet_binding(constraint: Constraint, text: str) -> bool:
    """Return True if the constraint has not restricted `text` yet, so that a continuation can use the same constraint.

    Free text never restricts. With triggered tags this holds while no trigger has started. Optional reasoning before either is free.
    """
    tag_json = constraint.value if constraint.kind == "structural_tag" else None
    content = tag_json.get("format", {}) if isinstance(tag_json, Mapping) else {}
    if content.get("type") == "sequence":
        content = content["elements"][-1]
    if content.get("type") == "any_text":
        return True
    if content.get("type") != "triggered_tags":
        return not text
    return not any(_is_triggered(trigger, text) for trigger in content["triggers"])


def _is_triggered(trigger: str, text: str) -> bool:
    return trigger in text or any(text.endswith(trigger[:size]) for size in range(1, len(trigger)))
