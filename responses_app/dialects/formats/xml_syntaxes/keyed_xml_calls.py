"""Calls with keyed elements: a name, then `<arg_key>key</arg_key><arg_value>value</arg_value>` for each parameter."""

from __future__ import annotations

from collections.abc import Sequence
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
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, ended, json_string_part, written_object
from responses_app.dialects.formats.reader import Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, text_value, value
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.values import is_text, to_json

_TYPES = frozenset(
    ["any", "array", "bool", "boolean", "dict", "float", "int", "integer", "list", "null", "number", "object", "str", "string"]
)
_BREAK = optional(literal("\n"))
# A call without arguments may have an empty line.
_BREAKS = one_of([literal("\n"), regex(r"\n{0,2}")])


@dataclass(frozen=True, slots=True)
class KeyedXmlCalls(SectionSyntax):
    """Syntax of calls of GLM, Hunyuan, K2-Horizon and IQuest, with or without line breaks between the elements.

    `prefix` and `suffix` stand around the name of every element. With `has_section` parallel calls share an element `tool_calls`.
    With `has_separator` the element `tool_sep` ends the name. With `has_types` a type may stand before a value, and a call may be
    a JSON object. `call_name` is the name of the element of a call.
    """

    prefix: str = ""
    suffix: str = ""
    has_section: bool = False
    has_separator: bool = False
    has_types: bool = False
    call_name: str = "tool_call"

    def mark(self, name: str) -> str:
        """Return the start tag of an element."""
        return f"<{self.prefix}{name}{self.suffix}>"

    def end_mark(self, name: str) -> str:
        """Return the end tag of an element."""
        return f"</{self.prefix}{name}{self.suffix}>"

    @property
    def begin(self) -> str:
        """Start tag of a call."""
        return self.mark(self.call_name)

    @property
    def end(self) -> str:
        """End tag of a call."""
        return self.end_mark(self.call_name)

    @property
    def section(self) -> tuple[str, str]:
        """Start tag and end tag around all calls."""
        return self.mark("tool_calls"), self.end_mark("tool_calls")

    @property
    def separator_mark(self) -> str:
        """Tag behind the name of a call."""
        return self.mark("tool_sep")

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read a call, or the calls of a section. Raises NotACall, EndOfText."""
        begins = (self.begin, self.section[1])
        marker: str | None = begin
        if begin == self.section[0]:
            yield from reader.skip_space()
            marker = yield from reader.accept(*begins)
        if marker != self.begin:
            raise NotACall
        while marker == self.begin:
            yield from self._call(reader, calls)
            if not self.has_section:
                return
            yield from reader.skip_space()
            marker = yield from reader.accept(*begins)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        names = [
            *(self.call_name, "arg_key", "arg_value"),
            *(["tool_calls"] if self.has_section else []),
            *(["arg_type"] if self.has_types else []),
        ]
        separator = [self.separator_mark] if self.has_separator else []
        return (*map(self.mark, names), *map(self.end_mark, names), *separator)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.section[0] if self.has_section else self.begin

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tags of the calls, or of a section."""
        calls = [self._tag(tool) for tool in tools]
        if not self.has_section:
            return calls
        line = "\n" if self.has_separator else ""
        begin, end = self.section
        return [tag(begin + line, tags(calls, line, only_one=only_one), line + end)]

    # Reading

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        yield from reader.skip_space()
        if self.has_types and (yield from reader.peek()) == "{":
            yield from JsonCalls(self.begin, self.end, ends=(self.end,)).read(reader, calls, self.begin)
            return
        separator = self.separator_mark if self.has_separator else ""
        head, stop = yield from reader.read_until(Markers(self.mark("arg_key"), self.end, self.begin, separator))
        name = head.strip()
        if not name or any(char in name for char in "{<\n"):
            raise NotACall
        calls.open(name)
        with written_object(reader, calls.write) as writer:
            if stop == separator:
                stop = yield from self._next(reader)
            while stop == self.mark("arg_key"):
                stop = yield from self._parameter(reader, calls, name, writer)
        calls.close()

    def _next(self, reader: Reader) -> Steps[str]:
        """Return the start tag of the next key, or the end tag of the call, also where other text follows."""
        yield from reader.skip_space()
        return (yield from reader.accept(self.mark("arg_key"), self.end)) or self.end

    def _parameter(self, reader: Reader, calls: CallWriter, name: str, writer: ObjectWriter) -> Steps[str]:
        """Read a key and a value; return the marker of the next key, or of the end."""
        key, stop = yield from reader.read_until(Markers(self.end_mark("arg_key"), self.end))
        if stop == self.end:
            calls.add_misplaced(key)
            return stop
        reader.unfinished = key
        schema = calls.properties(name).get(key.strip())
        if self.has_types:
            schema = yield from self._type(reader, calls, schema)
        yield from reader.skip_space()
        yield from reader.accept(self.mark("arg_value"))
        reader.unfinished = ""
        writer.key(key.strip())
        stop = yield from self._value(reader, calls, schema)
        return stop if stop == self.end else (yield from self._next(reader))

    def _type(self, reader: Reader, calls: CallWriter, schema: Any) -> Steps[Any]:
        """Read the type of a value; return `schema`, or a schema of the type if `schema` is unknown."""
        yield from reader.skip_space()
        if not (yield from reader.accept(self.mark("arg_type"))):
            return schema
        name, _ = yield from reader.read_until(Markers(self.end_mark("arg_type"), self.end))
        kind = name.partition("[")[0].strip()
        if kind not in _TYPES:
            calls.add_misplaced(name)
            return schema
        return {"type": kind} if schema is None else schema

    def _value(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[str]:
        parts: list[str] = []
        text = is_text(schema)
        emit = (lambda part: calls.write(json_string_part(part))) if text else parts.append

        def end() -> None:
            calls.write('"' if text else to_json("".join(parts), schema))

        calls.write('"' if text else "")
        with ended(reader, end, lambda: "".join(parts)):
            return (yield from reader.pass_until(Markers(self.end_mark("arg_value"), self.end), emit))

    # Grammar

    def _tag(self, tool: Tool) -> Format:
        tool_parameters = parameters(tool)
        content = any_text(self.end) if tool_parameters is None else sequence(_BREAKS, *map(self._element, tool_parameters))
        separator = self.separator_mark if self.has_separator else ""
        ends = (self.end,) if self.has_section else (f"{self.end}\n", self.end)
        return tag(f"{self.begin}{tool['name']}{separator}", content, *ends)

    def _element(self, parameter: Parameter) -> Format:
        begin, end = self.mark("arg_value"), self.end_mark("arg_value")
        content = text_value(parameter.schema, end) if is_text(parameter.schema) else value(parameter.schema)
        key = literal(f"{self.mark('arg_key')}{parameter.name}{self.end_mark('arg_key')}")
        element = sequence(key, _BREAK, tag(begin, content, end), _BREAK)
        return element if parameter.is_required else optional(element)
