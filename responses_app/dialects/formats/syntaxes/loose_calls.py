"""Calls with objects near JSON: `{name: "get_weather", arguments: {city: "Oslo"}}`, `get_weather({'city': 'Oslo'})`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from responses_app.dialects.constraints.structural_tag import (
    Format,
    arguments,
    is_plain,
    json_value,
    literal,
    one_of,
    optional,
    sequence,
    tag,
    tags,
)
from responses_app.dialects.formats.base import Tool
from responses_app.dialects.formats.calls import CallWriter
from responses_app.dialects.formats.reader import Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import parameters, separated
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.syntaxes.loose_json import pass_loose_json
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls
from responses_app.dialects.formats.syntaxes.python_values import python_value
from responses_app.dialects.formats.syntaxes.tool_call_json import ToolCallJsonParser


@dataclass(frozen=True, slots=True)
class Quotes:
    """Quotes around the keys and the strings of objects, empty for keys without quotes."""

    key: str
    string: str

    def arguments_of(self, tool: Tool) -> Format:
        """Match the arguments of a tool."""
        schema = tool.get("parameters") or {}
        if tool.get("grammar") or not (tool.get("strict") or is_plain(schema)) or not parameters(tool):
            return arguments(dict(tool))
        return self._object(schema)

    def written(self, text: str) -> str:
        """Return a key with the quotes around."""
        return f"{self.key}{text}{self.key}"

    def _object(self, schema: Mapping[str, Any]) -> Format:
        properties = parameters({"parameters": schema})
        if not properties:
            return json_value(dict(schema))
        items = [sequence(literal(f"{self.written(each.name)}: "), self._value(each.schema)) for each in properties]
        return sequence(literal("{"), separated(items, ", ", [each.is_required for each in properties]), literal("}"))

    def _value(self, schema: object) -> Format:
        if not isinstance(schema, Mapping):
            return json_value(True)
        if isinstance(schema.get("enum"), list):
            return one_of([literal(self._literal(value)) for value in schema["enum"]])
        if schema.get("type") == "object" and isinstance(schema.get("properties"), Mapping):
            return self._object(schema)
        if schema.get("type") == "array" and "items" in schema and is_plain(schema):
            items = tags([tag("", self._value(schema["items"]), "")], ", ", only_one=False)
            return sequence(literal("["), optional(items), literal("]"))
        return python_value(schema) if self.string == "'" else json_value(schema)

    def _literal(self, value: Any) -> str:
        """Return the text of a value."""
        if self.string == "'":
            return repr(value)
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self.written(key)}: {self._literal(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return f"[{', '.join(map(self._literal, value))}]"
        return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class LooseJsonCalls(JsonCalls):
    """Objects near JSON with the name and the arguments of a call."""

    quotes: Quotes = Quotes("", '"')

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin.rstrip() or f"{{{self.quotes.written(self.name_key)}: {self.quotes.string}"

    def _tag(self, tool: Tool, before: str = "", *after: str) -> Format:
        quotes = self.quotes
        name = f"{quotes.written(self.name_key)}: {quotes.string}{tool['name']}{quotes.string}"
        begin = f"{before}{{{name}, {quotes.written(self.arguments_key)}: "
        return tag(begin, quotes.arguments_of(tool), *(f"}}{each}" for each in after or ("",)))

    def _parse(self, reader: Reader, calls: CallWriter, stops: Markers, parser: ToolCallJsonParser) -> Steps[None]:
        def feed(text: str) -> None:
            parser.feed(text, 0)
            self._write(parser, calls)

        yield from pass_loose_json(reader, stops, feed)
        if not parser.over:
            self._stop(calls, parser)


@dataclass(frozen=True, slots=True)
class LooseNamedCalls(NamedCalls):
    """Names before objects near JSON."""

    quotes: Quotes = Quotes("", '"')

    def _values(self, tool: Tool) -> Format:
        return self.quotes.arguments_of(tool)

    def _pass_arguments(self, reader: Reader, calls: CallWriter, stops: Markers) -> Steps[None]:
        if (yield from reader.peek()) != "{":
            calls.write("{}")
        else:
            yield from pass_loose_json(reader, stops, calls.write)
