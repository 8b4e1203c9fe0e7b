"""Calls of GLM models: a name, then `<arg_key>key</arg_key><arg_value>value</arg_value>` for each parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, any_text, literal, optional, sequence, tag
from responses_app.dialects.formats.base import Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, json_string_part
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, text_value, value
from responses_app.dialects.formats.syntaxes.values import is_text, to_json

_BEGIN, _END = "<tool_call>", "</tool_call>"
_KEY, _END_KEY, _VALUE, _END_VALUE = "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"
_BREAK = optional(literal("\n"))
_HEAD_ENDS = Markers(_KEY, _END, _BEGIN)
_VALUE_ENDS = Markers(_END_VALUE, _END)


@dataclass(frozen=True, slots=True)
class KeyedXmlCalls:
    """Syntax of GLM calls, with or without line breaks between the elements."""

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read a call. Raises NotACall, EndOfText."""
        head, stop = yield from self._head(reader)
        name = head.strip()
        if not name or any(char in name for char in "{<\n"):
            raise NotACall
        calls.open(name)
        writer = ObjectWriter(calls.write)
        try:
            while stop == _KEY:
                stop = yield from self._parameter(reader, calls, name, writer)
        except EndOfText:
            if not reader.cut:
                writer.end()
            raise
        writer.end()
        calls.close()

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (_BEGIN, _END, _KEY, _END_KEY, _VALUE, _END_VALUE)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return _BEGIN

    @property
    def separator(self) -> str:
        """Text between two calls."""
        return "\n"

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002
        """Return the tags of the calls."""
        return [self._tag(tool) for tool in tools]

    def _head(self, reader: Reader) -> Steps[tuple[str, str]]:
        """Read the name. The end of the generation ends a name, unless cut off."""
        parts: list[str] = []
        stop = yield from reader.pass_until(_HEAD_ENDS, parts.append)
        return "".join(parts), stop

    def _parameter(self, reader: Reader, calls: CallWriter, name: str, writer: ObjectWriter) -> Steps[str]:
        """Read a key and a value; return the marker of the next key, or of the end."""
        key, _ = yield from reader.read_until(Markers(_END_KEY, _END))
        yield from reader.skip_space()
        yield from reader.accept(_VALUE)
        key = key.strip()
        schema = calls.properties(name).get(key)
        writer.key(key)
        stop = yield from self._value(reader, calls, schema)
        if stop == _END:
            return _END
        yield from reader.skip_space()
        return (yield from reader.accept(_KEY, _END)) or _END

    def _value(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[str]:
        parts: list[str] = []
        text = is_text(schema)
        emit = (lambda part: calls.write(json_string_part(part))) if text else parts.append
        calls.write('"' if text else "")
        try:
            stop = yield from reader.pass_until(_VALUE_ENDS, emit)
        except EndOfText:
            if not reader.cut:
                calls.write('"' if text else to_json("".join(parts), schema))
            raise
        calls.write('"' if text else to_json("".join(parts), schema))
        return stop

    def _tag(self, tool: Tool) -> Format:
        found = parameters(tool)
        content = any_text(_END) if found is None else sequence(_BREAK, *map(_element, found))
        return tag(f"{_BEGIN}{tool['name']}", content, _END)


def _element(parameter: Parameter) -> Format:
    content = text_value(parameter.schema, _END_VALUE) if is_text(parameter.schema) else value(parameter.schema)
    element = sequence(literal(f"{_KEY}{parameter.name}{_END_KEY}"), _BREAK, tag(_VALUE, content, _END_VALUE), _BREAK)
    return element if parameter.is_required else optional(element)
