"""Calls written as elements: a name, and an element for each parameter."""

from __future__ import annotations

import json
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
from responses_app.dialects.formats.base import SectionSyntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, ended, written_object
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, text_value, value
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.values import as_object, is_text, json_or_text, to_json, types_of
from responses_app.dialects.formats.xml_syntaxes.xml_text import (
    StringPart,
    attribute_name,
    attributes_of,
    unknown_attributes,
)

# A call without arguments may have an empty line.
_BREAKS = one_of([literal("\n"), regex(r"\n{0,2}")])
_PADDING = optional(literal("\n"))


@dataclass(frozen=True, slots=True)
class XmlCalls(SectionSyntax):
    """Section of elements with the name of the tool, which contain elements with the names of parameters.

    `call_open` and `parameter_open` are the beginnings of start tags up to the name: `<function=`, or with `attributes`
    `<invoke name=`. With `pads` a line break before and after a value is no part of the value, with `may_pad` the grammar has no
    such line breaks. The attribute `type_attribute` shows if a value is a string or JSON: `string="true"`, or `type="string"`.
    With `is_block` parallel calls share a section.

    `line` stands between the elements in the grammar, `around` before and after a call. `skipped` are texts between calls.
    With `has_index` a call has the attribute `index`. With `has_cdata` a value may be a CDATA section. With `has_json` a section
    may have a JSON object instead.
    """

    begin: str
    end: str
    call_open: str
    call_close: str
    parameter_open: str
    parameter_close: str
    attributes: bool = False
    type_attribute: str = ""
    pads: bool = False
    may_pad: bool = False
    is_block: bool = False
    tag_end: str = ">"
    line: str = "\n"
    around: tuple[str, str] = ("", "")
    skipped: tuple[str, ...] = ()
    has_index: bool = False
    has_cdata: bool = False
    has_json: bool = False

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read calls up to the end of the section, or to other text. Raises NotACall, EndOfText."""
        marker: str | None = begin
        if begin != self.call_open:
            marker = yield from self._next(reader)
        if marker is None and self.has_json:
            yield from JsonCalls(self.begin, self.end, ends=(self.end,)).read(reader, calls, begin)
            return
        if marker is None:
            raise NotACall
        while marker == self.call_open:
            yield from self._call(reader, calls)
            marker = yield from self._next(reader)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        inner = (self.call_open, self.call_close, self.parameter_open, self.parameter_close)
        return (self.begin, self.end, *inner, self.tag_end, *self.skipped)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin or self.call_open

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return a tag of a section for each tool, or a tag of a section with all calls."""
        if not self.is_block:
            begin = f"{self.begin}{self.line}" if self.begin else ""
            return [self._tag(tool, begin, *self._ends) for tool in tools]
        calls = tags([self._tag(tool, *self.around) for tool in tools], self.line, only_one=only_one)
        return [tag(f"{self.begin}{self.line}", calls, *self._ends)]

    @property
    def _ends(self) -> tuple[str, ...]:
        """Ends of a section in the grammar: a line break may follow."""
        end = f"{self.line}{self.end}" if self.end else ""
        return (f"{end}\n", end)

    def _tag(self, tool: Tool, before: str = "", *after: str) -> Format:
        ends = [f"{self.call_close}{each}" for each in after or ("",)]
        if self.has_index:
            index = sequence(one_of([literal(str(number)) for number in range(1, 10)]), literal(f'"{self.tag_end}'))
            return tag(f'{before}{self.call_open}"{tool["name"]}" index="', sequence(index, self._parameters(tool)), *ends)
        return tag(f"{before}{self._start(self.call_open, str(tool['name']))}", self._parameters(tool), *ends)

    # Reading

    def _next(self, reader: Reader) -> Steps[str | None]:
        """Read the beginning of the next call, or the end of the section; None where other text follows."""
        yield from reader.skip_space()
        while self.skipped and (yield from reader.accept(*self.skipped)):
            yield from reader.skip_space()
        return (yield from reader.accept(self.call_open, self.end))

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        head, stop = yield from reader.read_until(Markers(self.tag_end, self.call_close, self.end, self.call_open))
        if stop == self.call_open:
            raise NotACall
        name = self._name(head)
        calls.open(name)
        calls.add_misplaced(self._extra(head))
        with written_object(reader, calls.write) as writer:
            if stop == self.tag_end:
                yield from self._read_parameters(reader, calls, name, writer)
        calls.close()

    def _read_parameters(self, reader: Reader, calls: CallWriter, name: str, writer: ObjectWriter) -> Steps[None]:
        """Read parameters up to the closing marker of the call, or to other text."""
        while True:
            yield from reader.skip_space()
            accepted = yield from reader.accept(self.parameter_open, self.call_close)
            if accepted != self.parameter_open:
                if accepted is None and reader.at == len(reader.text):
                    raise EndOfText
                return
            head, _ = yield from reader.read_until(Markers(self.tag_end))
            key = self._name(head)
            calls.add_misplaced(self._extra(head))
            known = calls.properties(name)
            if self._is_wrapper(key, known) and writer.is_empty:
                yield from self._wrapped(reader, calls, writer, key, known)
            else:
                writer.key(key)
                yield from self._value(reader, calls, self._schema(head, known.get(key)))

    def _is_wrapper(self, key: str, known: Mapping[str, Any]) -> bool:
        """Return True if `key` is no parameter and may stand around all arguments."""
        return self.type_attribute == "string" and bool(known) and key in _WRAPPERS - set(known)

    def _wrapped(
        self, reader: Reader, calls: CallWriter, writer: ObjectWriter, key: str, known: Mapping[str, Any]
    ) -> Steps[None]:
        """Read a value under `key`, which is no parameter: an object of parameters has all arguments, another value stays."""
        text, stop = yield from self._until(reader, self._value_ends)
        parsed_object = as_object(text)
        if parsed_object and parsed_object.keys() <= known.keys():
            for name, each in parsed_object.items():
                writer.key(name)
                calls.write(json.dumps(each, ensure_ascii=False))
        else:
            writer.key(key)
            calls.write(json_or_text(text))
        self._put_back(reader, stop)

    @property
    def _value_ends(self) -> Markers:
        return Markers(self.parameter_close, self.parameter_open, self.call_close)

    def _value(self, reader: Reader, calls: CallWriter, schema: object) -> Steps[None]:
        if is_text(schema):
            yield from self._string(reader, calls, self._value_ends)
        else:
            text, stop = yield from self._until(reader, self._value_ends)
            calls.write(json_or_text(self._trimmed(text)) if schema is _ANY else to_json(self._trimmed(text), schema))
            self._put_back(reader, stop)

    def _until(self, reader: Reader, stops: Markers) -> Steps[tuple[str, str]]:
        """Read a value; at the end of the generation the value ends too, unless cut off."""
        parts: list[str] = []
        try:
            stop = yield from reader.pass_until(stops, parts.append)
        except EndOfText:
            if reader.cut:
                reader.unfinished = "".join(parts)
                raise
            stop = ""
        return "".join(parts), stop

    def _string(self, reader: Reader, calls: CallWriter, stops: Markers) -> Steps[None]:
        """Pass a string value on at once."""
        text = StringPart(calls, pads=self.pads or self.may_pad)

        def end() -> None:
            text.end()
            calls.write('"')

        calls.write('"')
        with ended(reader, end):
            if self.has_cdata and (yield from reader.accept(_CDATA)):
                yield from reader.pass_until(Markers(_CDATA_END), text.write)
                extra, stop = yield from reader.read_until(stops)
                calls.add_misplaced(extra)
            else:
                stop = yield from reader.pass_until(stops, text.write)
        self._put_back(reader, stop)

    def _put_back(self, reader: Reader, stop: str) -> None:
        if stop and stop != self.parameter_close:
            reader.at -= len(stop)

    def _trimmed(self, text: str) -> str:
        if self.has_cdata and text.strip().startswith(_CDATA):
            text = text.strip().removeprefix(_CDATA).removesuffix(_CDATA_END)
        is_padded = (self.pads or self.may_pad) and text.startswith("\n")
        return text.removeprefix("\n").removesuffix("\n") if is_padded else text

    def _name(self, head: str) -> str:
        """Return the name in a start tag behind `call_open` or `parameter_open`."""
        if not self.attributes:
            return head.strip()
        return attribute_name(head)

    def _extra(self, head: str) -> str:
        """Return the text of a start tag other than the known attributes."""
        return unknown_attributes(head) if self.attributes else ""

    def _schema(self, head: str, schema: object) -> object:
        if not self.type_attribute:
            return schema
        if attributes_of(head).get(self.type_attribute) not in ("true", "string"):
            return _ANY
        return _TEXT if "string" in types_of(schema) else schema

    # Grammar

    def _start(self, opening: str, name: str, mark: str = "") -> str:
        return f'{opening}"{name}"{mark}{self.tag_end}' if self.attributes else f"{opening}{name}{self.tag_end}"

    def _parameters(self, tool: Tool) -> Format:
        tool_parameters = parameters(tool)
        if tool_parameters is None:
            return any_text(self.call_close)
        return sequence(_BREAKS if self.line else literal(""), *map(self._parameter, tool_parameters))

    def _line(self) -> list[Format]:
        return [optional(literal(self.line))] if self.line else []

    def _parameter(self, parameter: Parameter) -> Format:
        string = is_text(parameter.schema)
        mark = f' {self.type_attribute}="{self._type(parameter.schema)}"' if self.type_attribute else ""
        content = text_value(parameter.schema, self.parameter_close) if string else value(parameter.schema)
        padded = sequence(_PADDING, content, _PADDING) if self.pads else content
        begin = self._start(self.parameter_open, parameter.name, mark)
        element = sequence(tag(begin, padded, self.parameter_close), *self._line())
        return element if parameter.is_required else optional(element)

    def _type(self, schema: object) -> str:
        """Return the value of the attribute `type_attribute` for a parameter."""
        if self.type_attribute == "string":
            return "true" if is_text(schema) else "false"
        return min(types_of(schema)).replace("integer", "number")


_CDATA, _CDATA_END = "<![CDATA[", "]]>"
# Names that models write around all arguments.
_WRAPPERS = {"arguments", "input"}
_TEXT: Mapping[str, Any] = {"type": "string"}
_ANY: Mapping[str, Any] = {"type": ["object", "array", "number", "boolean", "null", "string"]}
