"""Calls of Gemma models: `call:name{key:<|"|>text<|"|>,number:1,list:[true]}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from responses_app.dialects.constraints.structural_tag import (
    Format,
    any_text,
    literal,
    one_of,
    optional,
    regex,
    sequence,
    tag,
    tags,
)
from responses_app.dialects.formats.base import SectionSyntax, Tool
from responses_app.dialects.formats.calls import (
    CallWriter,
    NotACall,
    ObjectWriter,
    ended,
    json_string_part,
    pass_scalar,
    written_object,
)
from responses_app.dialects.formats.reader import Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import SCALARS, parameters, separated
from responses_app.dialects.formats.values import json_or_text, to_json, types_of

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GemmaCalls(SectionSyntax):
    """Syntax of the calls of Gemma models, one in each section. `quote` stands on both sides of a string.

    With `sorts_keys` the keys of objects are in alphabetical order, as the chat template writes these.
    """

    begin: str
    end: str
    quote: str
    sorts_keys: bool = False

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read a call. Raises NotACall, EndOfText."""
        yield from reader.skip_space()
        yield from reader.accept("call:", ":")
        name, stop = yield from reader.read_until(Markers("{", "(", self.end, self.begin))
        if stop == self.begin or (stop == self.end and not name.strip()):
            raise NotACall
        calls.open(name.strip())
        if stop == self.end:
            calls.write("{}")
        else:
            yield from self._object(reader, calls, calls.properties(name.strip()))
        calls.close()
        yield from reader.skip_space(")}")
        yield from reader.accept(self.end)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (self.quote,)

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002
        """Return the tags of the calls."""
        return [tag(f"{self.begin}call:{tool['name']}", self._object_format(tool), self.end) for tool in tools]

    def _object(self, reader: Reader, calls: CallWriter, known: Mapping[str, Any]) -> Steps[None]:
        """Read the properties of an object behind the opening brace, as JSON. The end of the generation ends an object too."""
        with written_object(reader, calls.write) as writer:
            yield from self._properties(reader, calls, writer, known)

    def _properties(self, reader: Reader, calls: CallWriter, writer: ObjectWriter, known: Mapping[str, Any]) -> Steps[None]:
        while True:
            yield from reader.skip_space(",")
            if (yield from reader.accept("}", ")")):
                break
            key, stop = yield from reader.read_until(Markers(":", "}", self.end))
            if stop != ":":
                calls.add_misplaced(key)
                reader.at -= len(stop)
                if stop == "}":
                    continue
                break
            key = key.strip().removeprefix(self.quote).removesuffix(self.quote)
            writer.key(key)
            yield from self._value(reader, calls, known.get(key))

    def _value(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[None]:
        yield from reader.skip_space()
        accepted = yield from reader.accept(self.quote, "{", "[")
        if accepted == self.quote:
            yield from self._string(reader, calls.write)
        elif accepted == "{":
            yield from self._object(reader, calls, _inner(schema, "properties"))
        elif accepted == "[":
            yield from self._array(reader, calls, _inner(schema, "items"))
        else:
            yield from self._scalar(reader, calls, schema)

    def _scalar(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[None]:
        """Read a value without quotes: JSON, or a string if the schema allows nothing else."""
        yield from pass_scalar(
            reader, Markers(",", "}", "]", ")", self.end), lambda text: calls.write(_to_json(text.strip(), schema))
        )

    def _string(self, reader: Reader, write: Write) -> Steps[None]:
        write('"')
        with ended(reader, lambda: write('"')):
            yield from reader.pass_until(Markers(self.quote, self.end), lambda text: write(json_string_part(text)))

    def _array(self, reader: Reader, calls: CallWriter, schema: Mapping[str, Any]) -> Steps[None]:
        """Read the items of a list behind the opening bracket. The end of the generation ends a list too."""
        calls.write("[")
        with ended(reader, lambda: calls.write("]")):
            yield from self._items(reader, calls, schema)

    def _items(self, reader: Reader, calls: CallWriter, schema: Mapping[str, Any]) -> Steps[None]:
        separator = ""
        while True:
            yield from reader.skip_space(",")
            if (yield from reader.accept("]")):
                return
            if (stop := (yield from reader.accept("}", self.end))) is not None:
                reader.at -= len(stop)
                return
            yield from reader.peek()
            calls.write(separator)
            separator = ", "
            yield from self._value(reader, calls, schema or None)

    def _object_format(self, tool: Tool) -> Format:
        tool_parameters = parameters(tool)
        if tool_parameters is None:
            return sequence(literal("{"), any_text("}", self.end), literal("}"))
        tool_parameters = sorted(tool_parameters, key=lambda parameter: parameter.name) if self.sorts_keys else tool_parameters
        items = [sequence(literal(f"{each.name}:"), self._value_format(each.schema)) for each in tool_parameters]
        required = [each.is_required for each in tool_parameters]
        return sequence(literal("{"), separated(items, ",", required), literal("}"))

    def _value_format(self, schema: object) -> Format:
        if not isinstance(schema, Mapping):
            return any_text("}", self.end)
        if isinstance(schema.get("enum"), list):
            return one_of([literal(self._written(value)) for value in schema["enum"]])
        formats = [self._type_format(name, schema) for name in sorted(types_of(schema))]
        return one_of(formats)

    def _type_format(self, name: str, schema: Mapping[str, object]) -> Format:
        if name == "string":
            return tag(self.quote, any_text(self.quote), self.quote)
        if name == "object":
            return self._object_format({"parameters": schema})
        if name == "array":
            item = self._value_format(schema.get("items"))
            return sequence(literal("["), optional(tags([tag("", item, "")], ",", only_one=False)), literal("]"))
        return regex(SCALARS[name])

    def _written(self, value: object) -> str:
        return f"{self.quote}{value}{self.quote}" if isinstance(value, str) else json.dumps(value)


def _inner(schema: object, key: str) -> Mapping[str, Any]:
    """Return the mapping under `key` of a schema, empty if absent."""
    subschema = schema.get(key) if isinstance(schema, Mapping) else None
    return subschema if isinstance(subschema, Mapping) else {}


def _to_json(text: str, schema: object) -> str:
    return to_json(text, schema) if isinstance(schema, Mapping) else json_or_text(text)
