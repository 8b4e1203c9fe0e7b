"""Calls written as a name and an element for each parameter, with texts of any form between names, keys and values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from responses_app.dialects.constraints.structural_tag import Format, any_text, literal, sequence, tag, tags
from responses_app.dialects.formats.base import NAME, SectionSyntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, written_object
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, separated, text_value, value
from responses_app.dialects.formats.values import is_text, to_json
from responses_app.dialects.formats.xml_syntaxes.xml_text import StringPart

_BETWEEN_TAGS = re.compile(r"\s*\n\s*|(?<=[>\]▷⟫])(?=[<\[◁⟪])")


@dataclass(frozen=True, slots=True)
class ElementCalls(SectionSyntax):
    """Calls `call_begin` name `name_end`, a `key_begin` key `key_end` value `value_end` for each parameter, and `call_end`.

    With `begin` and `end` parallel calls share a section, else `call_separator` stands between two calls. `element_separator`
    stands between two parameters. `call_end` may have the name and `value_end` the key, in the place of `NAME`. Without `name_end` the
    first key or the end of the call ends the name, without `value_end` the next key or the end of the call ends the value.
    White space around these texts is that of the grammar.
    """

    call_begin: str
    name_end: str
    call_end: str
    key_begin: str
    key_end: str
    value_end: str
    begin: str = ""
    end: str = ""
    element_separator: str = ""
    call_separator: str = ""
    needs_declared: bool = False

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read a call, or the calls of a section. Raises NotACall, EndOfText."""
        call_begin, section = self.call_begin.strip(), self.begin.strip()
        if self.needs_declared or (section and begin == section):
            yield from reader.skip_space()
            if not (yield from reader.accept(call_begin)):
                raise NotACall
        while True:
            yield from self._call(reader, calls)
            if not section:
                return
            yield from reader.skip_space()
            calls.commit()
            if (yield from reader.accept(*filter(None, (call_begin, self.end.strip())))) != call_begin:
                return

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        ends = (part for text in (self.call_end, self.value_end) for part in text.split(NAME))
        texts = (
            self.begin,
            self.end,
            self.call_begin,
            self.name_end,
            self.key_begin,
            self.key_end,
            self.element_separator,
            *ends,
        )
        return tuple(filter(None, map(str.strip, texts)))

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return (self.begin or self.call_begin).strip()

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tags of the calls, or of a section."""
        calls = [self._tag(tool) for tool in tools]
        if not self.begin:
            return calls
        return [tag(self.begin, tags(calls, self.call_separator, only_one=only_one), self.end)]

    # Reading

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        stop: str | None
        name, stop = yield from self._name(reader)
        if self.needs_declared and not calls.is_declared(name):
            raise NotACall
        calls.open(name)
        end = self.call_end.replace(NAME, name)
        with written_object(reader, calls.write) as writer:
            if stop == first_tag(self.name_end):
                yield from skip_rest(reader, self.name_end)
                stop = yield from self._next(reader, end)
            while stop == self.key_begin.strip():
                yield from self._parameter(reader, calls, writer, name, first_tag(end))
                stop = yield from self._next(reader, end)
            yield from skip_rest(reader, end)
        calls.close()

    def _name(self, reader: Reader) -> Steps[tuple[str, str]]:
        """Read the name of a call; return the name and the text behind it. Raises NotACall, EndOfText."""
        yield from reader.skip_space()
        end = self.call_end.partition(NAME)[0]
        ends = (first_tag(self.name_end),) if self.name_end.strip() else (self.key_begin.strip(), first_tag(end))
        others = (self.call_begin.strip(), *(("\n", " ") if self.needs_declared else ()))
        head, stop = yield from reader.read_until(Markers(*ends, *others, may_overlap=True))
        name = head.strip()
        if stop not in ends or not name or any(char in name for char in "{<\n"):
            raise NotACall
        return name, stop

    def _next(self, reader: Reader, end: str) -> Steps[str | None]:
        """Return the beginning of the next key, or the end of the call; None where other text follows. Raises EndOfText."""
        yield from reader.skip_space()
        if separator := self.element_separator.strip():
            yield from reader.accept(separator)
            yield from reader.skip_space()
        accepted = yield from reader.accept(self.key_begin.strip(), first_tag(end))
        if accepted is None and reader.at == len(reader.text):
            raise EndOfText
        return accepted

    def _parameter(self, reader: Reader, calls: CallWriter, writer: ObjectWriter, name: str, end: str) -> Steps[None]:
        """Read a key and a value, up to the end of the value, or before the end of the call."""
        key, stop = yield from reader.read_until(Markers(first_tag(self.key_end), end, may_overlap=True))
        key = key.strip()
        if stop == end:
            calls.add_misplaced(key)
            reader.at -= len(stop)
            return
        yield from skip_rest(reader, self.key_end)
        writer.key(key)
        value_end = self.value_end.replace(NAME, key)
        own_end = first_tag(value_end)
        stops = Markers(own_end or self.element_separator.strip() or self.key_begin.strip(), end, may_overlap=True)
        stop = yield from self._value(reader, calls, calls.properties(name).get(key), stops)
        if stop == own_end:
            yield from skip_rest(reader, value_end)
        else:
            reader.at -= len(stop)

    def _value(self, reader: Reader, calls: CallWriter, schema: object, stops: Markers) -> Steps[str]:
        """Read a value; return the text that ends it. At the end of the generation the value ends too, unless cut off."""
        parts, is_string = list[str](), is_text(schema)
        string = StringPart(calls, pads=self.value_end.startswith("\n"))
        calls.write('"' if is_string else "")
        try:
            stop = yield from reader.pass_until(stops, string.write if is_string else parts.append)
        except EndOfText:
            if reader.cut:
                reader.unfinished = "".join(parts)
                raise
            stop = ""
        string.end()
        calls.write('"' if is_string else to_json("".join(parts).strip("\n"), schema))
        return stop

    # Grammar

    def _tag(self, tool: Tool) -> Format:
        name, tool_parameters = str(tool["name"]), parameters(tool)
        end, name_end = self.call_end.replace(NAME, name), self.name_end
        if tool_parameters is None:
            content = any_text(end.strip())
        elif tool_parameters:
            elements = [self._element(each, end) for each in tool_parameters]
            content = separated(elements, self.element_separator, [each.is_required for each in tool_parameters])
        else:
            # The first key alone is indented.
            content, name_end = literal(""), self.name_end.rstrip(" ")
        ends = (end,) if self.begin or not self.call_separator else (end + self.call_separator, end)
        return tag(f"{self.call_begin}{name}{name_end}", content, *ends)

    def _element(self, parameter: Parameter, call_end: str) -> Format:
        begin, end = f"{self.key_begin}{parameter.name}{self.key_end}", self.value_end.replace(NAME, parameter.name)
        if not is_text(parameter.schema):
            return sequence(literal(begin), value(parameter.schema), literal(end))
        if end.strip():
            return tag(begin, text_value(parameter.schema, end.strip()), end)
        choices = parameter.schema.get("enum") if isinstance(parameter.schema, Mapping) else None
        others = any_text(*filter(None, (self.element_separator.strip(), self.key_begin.strip(), call_end.strip())))
        return sequence(literal(begin), text_value(parameter.schema, "") if choices else others)


@lru_cache(maxsize=256)
def _tags(text: str) -> Sequence[str]:
    """Return the tags and lines of a text: a model may write other white space between these."""
    return _BETWEEN_TAGS.split(text.strip())


def first_tag(text: str) -> str:
    """Return the first tag or line of a text."""
    return _tags(text)[0]


def skip_rest(reader: Reader, text: str) -> Steps[None]:
    """Skip the text behind the first tag of `text`."""
    for each in _tags(text)[1:]:
        yield from reader.skip_space()
        yield from reader.accept(each)
