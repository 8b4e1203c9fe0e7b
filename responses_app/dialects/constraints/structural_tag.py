"""Builders for the structural tags that constrain an answer: plain JSON, as xgrammar reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.tools.selection import Tool
from responses_app.engine_interface import Constraint

Format: TypeAlias = dict[str, Any]
# Enough for a line break and the indentation of ten levels.
_WHITE_SPACE = 24
_PLAIN = frozenset(
    {"$schema", "type", "properties", "required", "additionalProperties", "items", "enum", "title", "description", "default"}
)


def literal(value: str) -> Format:
    """Exactly this text. Special tokens are matched by their text: token-level formats share masks by mistake in xgrammar 0.2.8."""
    return {"type": "const_string", "value": value}


def regex(pattern: str) -> Format:
    """Text that matches."""
    return {"type": "regex", "pattern": pattern}


def any_text(*excludes: str) -> Format:
    """Any text that holds none of `excludes`."""
    return {"type": "any_text", "excludes": list(excludes)}


def json_value(schema: Mapping[str, Any] | bool) -> Format:
    """JSON of a schema, keys in the order of the schema. White space has a limit, or a weak model writes it for ever (§3.14)."""
    wanted = schema if isinstance(schema, bool) else dict(schema)
    return {"type": "json_schema", "json_schema": wanted, "max_whitespace_cnt": _WHITE_SPACE}


def sequence(*elements: Format) -> Format:
    """One after the other."""
    return {"type": "sequence", "elements": list(elements)}


def one_of(elements: Sequence[Format]) -> Format:
    """One of them."""
    return elements[0] if len(elements) == 1 else {"type": "or", "elements": list(elements)}


def optional(content: Format) -> Format:
    """It or nothing."""
    return {"type": "optional", "content": content}


def tag(begin: str, content: Format, end: str) -> Format:
    """Content between two texts."""
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def tags(each: Sequence[Format], separator: str, *, only_one: bool) -> Format:
    """At least one of these tags, and nothing between them but the separator."""
    return {
        "type": "tags_with_separator",
        "tags": list(each),
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": only_one,
    }


def triggered(trigger: str, each: Sequence[Format], *, only_one: bool) -> Format:
    """Free text, in which whatever begins like `trigger` must become one of these tags."""
    return {"type": "triggered_tags", "triggers": [trigger], "tags": list(each), "stop_after_first": only_one}


def constraint(content: Format) -> Constraint:
    """The whole answer must match, from the first token on. It ends before the stop token: no grammar may spell that."""
    return Constraint("structural_tag", {"type": "structural_tag", "format": content})


def arguments(tool: Tool) -> Format:
    """The arguments of a call: of its schema if that was promised or is plain, and in any case an object that parses (C7).

    One text that has a grammar is the only argument of its tool.
    """
    if tool.get("grammar"):
        return sequence(literal('{"input": "'), {"type": "grammar", "grammar": tool["grammar"]}, literal('"}'))
    schema = tool.get("parameters") or {}
    wanted = schema if tool.get("strict") or plain(schema) else {}
    return json_value({**wanted, "type": "object"} if wanted.get("type", "object") == "object" else {"type": "object"})


def plain(schema: object) -> bool:
    """Whether a schema that nobody checked uses only words that every grammar compiler knows."""
    if not isinstance(schema, Mapping) or not set(schema) <= _PLAIN:
        return False
    if not isinstance(schema.get("type", "object"), str) or schema.get("additionalProperties") not in (None, False, True):
        return False
    properties = schema.get("properties", {})
    children = [*properties.values()] if isinstance(properties, Mapping) else [None]
    return all(plain(child) for child in [*children, *([schema["items"]] if "items" in schema else [])])


def answer(turn: Turn) -> Format | None:
    """What `text.format` asks of the final text, None for free text (§3.14). Raises BadTurn."""
    kind = turn.format.get("type", "text")
    if kind == "text":
        return None
    if kind == "json_object":
        return json_value({"type": "object"})
    if kind == "json_schema" and isinstance(turn.format.get("schema"), Mapping):
        return json_value(turn.format["schema"])
    raise UnsupportedInput(f"Invalid value: {kind!r}.", "text.format.type", "invalid_value")


def not_yet_binding(constraint: Constraint, text: str) -> bool:
    """Whether an answer that begins with `text` is bound as little as one that has not begun: it may go on under the same constraint.

    So it is where only what begins like a trigger is bound, and nothing has.
    """
    told = constraint.value if constraint.kind == "structural_tag" else None
    content = told.get("format", {}) if isinstance(told, Mapping) else {}
    if content.get("type") != "triggered_tags":
        return not text
    return not any(_begun(trigger, text) for trigger in content["triggers"])


def _begun(trigger: str, text: str) -> bool:
    return trigger in text or any(text.endswith(trigger[:size]) for size in range(1, len(trigger)))
