"""Calls written as elements: a name, and an element for each parameter."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
from responses_app.dialects.formats.base import Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, json_string_part
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, text_value, value
from responses_app.dialects.formats.syntaxes.values import is_text, json_or_text, to_json

# A call without arguments may have an empty line.
_BREAKS = one_of([literal("\n"), regex(r"\n{0,2}")])
_ATTRIBUTE = re.compile(r"""(\w+)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")


@dataclass(frozen=True, slots=True)
class XmlCalls:
    """Section of elements with the name of the tool, which contain elements with the names of parameters.

    `call_open` and `parameter_open` are the beginnings of start tags up to the name: `<function=`, or with `attributes`
    `<invoke name=`. With `pads` a line break before and after a value is no part of the value,
    with `may_pad` the grammar has no such line breaks. With `marks_strings` the
    attribute `string` shows if a value is a string or JSON. With `is_block` parallel calls share a section.
    """

    begin: str
    end: str
    call_open: str
    call_close: str
    parameter_open: str
    parameter_close: str
    attributes: bool = False
    marks_strings: bool = False
    pads: bool = False
    may_pad: bool = False
    is_block: bool = False

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read calls up to the end of the section, or to other text. Raises NotACall, EndOfText."""
        found: str | None = begin
        if begin != self.call_open:
            yield from reader.skip_space()
            found = yield from reader.accept(self.call_open, self.end)
        if found is None:
            raise NotACall
        while found == self.call_open:
            yield from self._call(reader, calls)
            yield from reader.skip_space()
            found = yield from reader.accept(self.call_open, self.end)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (self.begin, self.end, self.call_open, self.call_close, self.parameter_open, self.parameter_close)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin

    @property
    def separator(self) -> str:
        """Text between two sections."""
        return "\n"

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return a tag of a section for each tool, or a tag of a section with all calls."""
        if not self.is_block:
            return [self._tag(tool, f"{self.begin}\n", f"\n{self.end}") for tool in tools]
        calls = tags([self._tag(tool) for tool in tools], "\n", only_one=only_one)
        return [tag(f"{self.begin}\n", calls, f"\n{self.end}")]

    def _tag(self, tool: Tool, before: str = "", after: str = "") -> Format:
        begin = f"{before}{self._start(self.call_open, str(tool['name']))}"
        return tag(begin, self._parameters(tool), f"{self.call_close}{after}")

    # Reading

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        head, stop = yield from reader.read_until(Markers(">", self.call_close, self.end))
        name = self._name(head)
        calls.open(name)
        calls.add_misplaced(self._extra(head))
        writer = ObjectWriter(calls.write)
        try:
            if stop == ">":
                yield from self._read_parameters(reader, calls, name, writer)
        except EndOfText:
            if not reader.cut:
                writer.end()
            raise
        writer.end()
        calls.close()

    def _read_parameters(self, reader: Reader, calls: CallWriter, name: str, writer: ObjectWriter) -> Steps[None]:
        """Read parameters up to the closing marker of the call, or to other text."""
        while True:
            yield from reader.skip_space()
            found = yield from reader.accept(self.parameter_open, self.call_close)
            if found != self.parameter_open:
                if found is None and reader.at == len(reader.text):
                    raise EndOfText
                return
            head, _ = yield from reader.read_until(Markers(">"))
            key = self._name(head)
            calls.add_misplaced(self._extra(head))
            schema = self._schema(head, calls.properties(name).get(key))
            writer.key(key)
            yield from self._value(reader, calls, schema)

    def _value(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[None]:
        stops = Markers(self.parameter_close, self.parameter_open, self.call_close)
        if is_text(schema):
            yield from self._string(reader, calls, stops)
        else:
            text, stop = yield from self._until(reader, stops)
            calls.write(json_or_text(self._trimmed(text)) if schema is _ANY else to_json(self._trimmed(text), schema))
            self._put_back(reader, stop)

    def _until(self, reader: Reader, stops: Markers) -> Steps[tuple[str, str]]:
        """Read a value; at the end of the generation the value ends too, unless cut off."""
        parts: list[str] = []
        try:
            stop = yield from reader.pass_until(stops, parts.append)
        except EndOfText:
            if reader.cut:
                raise
            stop = ""
        return "".join(parts), stop

    def _string(self, reader: Reader, calls: CallWriter, stops: Markers) -> Steps[None]:
        """Pass a string value on as it comes."""
        text = _StringPart(calls, pads=self.pads or self.may_pad)
        calls.write('"')
        try:
            stop = yield from reader.pass_until(stops, text.write)
        except EndOfText:
            if not reader.cut:
                text.end()
                calls.write('"')
            raise
        text.end()
        calls.write('"')
        self._put_back(reader, stop)

    def _put_back(self, reader: Reader, stop: str) -> None:
        if stop and stop != self.parameter_close:
            reader.at -= len(stop)

    def _trimmed(self, text: str) -> str:
        return text.removeprefix("\n").removesuffix("\n") if self.pads or self.may_pad else text

    def _name(self, head: str) -> str:
        """Return the name in a start tag behind `call_open` or `parameter_open`."""
        if not self.attributes:
            return head.strip()
        match = _ATTRIBUTE.match(f"name={head.strip()}")
        return next((each for each in match.groups()[1:] if each), "") if match else ""

    def _extra(self, head: str) -> str:
        """Return the text of a start tag other than the attributes `name` and `string`."""
        return _ATTRIBUTE.sub(_unless_known, f"name={head.strip()}") if self.attributes else ""

    def _schema(self, head: str, schema: object) -> object:
        if not self.marks_strings:
            return schema
        marks = {match[1]: match[2] for match in _ATTRIBUTE.finditer(head)}
        return _TEXT if marks.get("string") == "true" else _ANY

    # Grammar

    def _start(self, opening: str, name: str, mark: str = "") -> str:
        return f'{opening}"{name}"{mark}>' if self.attributes else f"{opening}{name}>"

    def _parameters(self, tool: Tool) -> Format:
        found = parameters(tool)
        if found is None:
            return any_text(self.call_close)
        return sequence(_BREAKS, *map(self._parameter, found))

    def _parameter(self, parameter: Parameter) -> Format:
        string = is_text(parameter.schema)
        mark = f' string="{"true" if string else "false"}"' if self.marks_strings else ""
        space = "\n" if self.pads else ""
        content = text_value(parameter.schema, self.parameter_close) if string else value(parameter.schema)
        begin = self._start(self.parameter_open, parameter.name, mark) + space
        element = sequence(tag(begin, content, f"{space}{self.parameter_close}"), optional(literal("\n")))
        return element if parameter.is_required else optional(element)


_TEXT: Mapping[str, Any] = {"type": "string"}
_ANY: Mapping[str, Any] = {"type": ["object", "array", "number", "boolean", "null", "string"]}


def _unless_known(attribute: re.Match[str]) -> str:
    """Return the text of an unknown attribute."""
    is_known = attribute[1] == "name" or (attribute[1] == "string" and attribute[2] in ("true", "false"))
    return "" if is_known else attribute[0]


class _StringPart:
    """Writer of the inside of a JSON string. With `pads` a line break at either end is left out."""

    def __init__(self, calls: CallWriter, *, pads: bool) -> None:
        self._calls = calls
        self._pads = pads
        self._is_first = True
        self._held = ""

    def write(self, text: str) -> None:
        """Write text, except a line break that may be the last character."""
        text = self._held + text
        self._held = ""
        if self._pads and self._is_first and text:
            text = text.removeprefix("\n")
            self._is_first = False
        if self._pads and text.endswith("\n"):
            text, self._held = text[:-1], "\n"
        self._calls.write(json_string_part(text))

    def end(self) -> None:
        """End the string: the line break held back is no part of the value."""
        self._held = ""
