"""Text of calls in a declared format: the only text that the grammar of these calls allows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.dialects.constraints.structural_tag import Format
from responses_app.dialects.formats.base import Syntax, Tool


def write_calls(syntax: Syntax, calls: Sequence[Mapping[str, Any]]) -> str:
    """Write calls, mappings with `name` and `arguments`, in the format of `syntax`."""
    formats = syntax.tags([_constant_tool(call) for call in calls], only_one=False)
    usual = [each for each in formats if not each["begin"] or each["begin"].startswith(syntax.trigger)]
    return _text(usual, syntax.separator).removesuffix("\n")


def _constant_tool(call: Mapping[str, Any]) -> Tool:
    """Return a tool whose parameters allow the arguments of a call alone."""
    arguments = call["arguments"] if isinstance(call["arguments"], Mapping) else {"arguments": call["arguments"]}
    schema = {
        "type": "object",
        "const": arguments,
        "properties": {name: {"const": value, "enum": [value]} for name, value in arguments.items()},
        "required": list(arguments),
    }
    return {"name": call["name"], "parameters": schema, "strict": True}


def _text(formats: Sequence[Format], separator: str) -> str:
    return separator.join(map(_only_text, formats))


def _only_text(part: Format) -> str:
    """Return the first text that a format allows."""
    kind = part["type"]
    if kind == "const_string":
        return str(part["value"])
    if kind == "json_schema":
        return json.dumps(part["json_schema"]["const"], ensure_ascii=False)
    if kind == "tag":
        end = part["end"] if isinstance(part["end"], str) else part["end"][0]
        return f"{part['begin']}{_only_text(part['content'])}{end}"
    if kind == "tags_with_separator":
        return _text(part["tags"], str(part["separator"]))
    if kind == "sequence":
        return _text(part["elements"], "")
    if kind == "or":
        return _only_text(part["elements"][0])
    if kind == "optional":
        return _only_text(part["content"])
    # Free text, as of a call without arguments.
    return ""
