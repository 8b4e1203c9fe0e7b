"""Calls with a field for each parameter: lines `city: Paris`, options `--city="Paris"` or lists `(city "Paris")`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, any_text, literal, one_of, sequence, tag
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
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import Parameter, parameters, separated, value
from responses_app.dialects.formats.syntaxes.loose_json import pass_loose_json
from responses_app.dialects.formats.values import is_text, to_json

_WORD = re.compile(r"[\w.$/-]+")
_SCALAR_ENDS = Markers(" ", "\t", "\n", ",", ")", "}", "]", "|", "<", ";")
# Longest text behind a line that decides if the line ends a value.
_MAX_KEY = 200


@dataclass(frozen=True, slots=True)
class FieldCalls(SectionSyntax):
    """Calls `begin` name `name_end`, `key_begin` key `key_end` value `value_end` for each parameter, and `end`.

    `field_separator` stands between two parameters. Values are JSON with `is_json`, also with other quotes; else they are text up to the
    next line with a key, or to the end of the call. White space around these texts is that of the grammar. With `needs_declared`
    only calls of declared tools are calls.
    """

    begin: str
    name_end: str
    key_begin: str
    key_end: str
    value_end: str
    field_separator: str
    end: str
    is_json: bool
    needs_declared: bool = False

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read a call. Raises NotACall, EndOfText."""
        if self.needs_declared:
            yield from reader.accept(begin)
        else:
            yield from _skip(reader, self.begin.strip().removeprefix(begin))
        yield from reader.skip_space()
        name = yield from _word(reader)
        if not name or (self.needs_declared and not calls.is_declared(name)):
            raise NotACall
        calls.open(name)
        with written_object(reader, calls.write) as writer:
            yield from _skip(reader, self.name_end)
            while not (yield from self._is_at_end(reader)):
                yield from self._field(reader, calls, writer, name)
        calls.close()
        yield from _skip(reader, self.end)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        texts = (self.begin, self.name_end, self.key_begin, self.key_end, self.value_end, self.field_separator, self.end)
        return tuple(part for text in texts for part in text.split())

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin.strip()

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002
        """Return the tags of the calls."""
        return [self._tag(tool) for tool in tools]

    # Reading

    @property
    def _end(self) -> str:
        """First word of the end of a call."""
        return self.end.split()[0]

    def _is_at_end(self, reader: Reader) -> Steps[bool]:
        yield from reader.skip_space()
        accepted = yield from reader.accept(self._end)
        reader.at -= len(accepted or "")
        if accepted is None and reader.at == len(reader.text):
            raise EndOfText
        return accepted is not None

    def _field(self, reader: Reader, calls: CallWriter, writer: ObjectWriter, name: str) -> Steps[None]:
        """Read a key and a value. Other text up to the end of the line is misplaced."""
        yield from _skip(reader, self.key_begin)
        yield from reader.skip_space()
        key = yield from _word(reader)
        yield from reader.skip_space()
        key_end = self.key_end.strip()
        if not key or (key_end and not (yield from reader.accept(key_end))):
            calls.add_misplaced(key)
            text, stop = yield from reader.read_until(Markers("\n", self._end))
            calls.add_misplaced(text)
            reader.at -= len(stop)
            return
        writer.key(key)
        schema = calls.properties(name).get(key)
        if not self.is_json:
            yield from self._text(reader, calls, schema, name)
        else:
            yield from reader.skip_space()
            if (yield from reader.peek()) in "\"'{[":
                yield from pass_loose_json(reader, Markers(), calls.write)
            else:
                yield from pass_scalar(reader, _SCALAR_ENDS, lambda text: calls.write(to_json(text, schema)))
        yield from _skip(reader, self.value_end)
        yield from _skip(reader, self.field_separator)

    def _text(self, reader: Reader, calls: CallWriter, schema: object, name: str) -> Steps[None]:
        """Read a text without quotes. At the end of the generation the text ends too, unless cut off. Raises EndOfText."""
        parts, is_string = list[str](), is_text(schema)
        is_at_key = re.compile(
            rf"{re.escape(self.key_begin.strip())}\s*({'|'.join(map(re.escape, calls.properties(name))) or _WORD.pattern})"
            rf"\s*{re.escape(self.key_end.strip())}"
        )

        def emit(text: str) -> None:
            if is_string:
                calls.write(json_string_part(text))
            else:
                parts.append(text)

        def end() -> None:
            calls.write('"' if is_string else to_json("".join(parts).strip(), schema))

        yield from reader.skip_space()
        calls.write('"' if is_string else "")
        with ended(reader, end, lambda: "".join(parts)):
            while (yield from reader.pass_until(Markers("\n", self._end), emit)) == "\n":
                line = yield from self._next_line(reader)
                if is_at_key.match(line) or line.startswith(self._end):
                    break
                emit("\n")
            else:
                reader.at -= len(self._end)

    def _next_line(self, reader: Reader) -> Steps[str]:
        """Return the next line that is not empty, as soon as it decides if a key or the end of the call follows."""
        while True:
            line, line_end, _ = reader.unread.lstrip()[:_MAX_KEY].partition("\n")
            if line_end or len(line) == _MAX_KEY or line.startswith(self._end) or reader.closed:
                return line
            yield from reader.wait()

    # Grammar

    def _tag(self, tool: Tool) -> Format:
        tool_parameters = parameters(tool)
        if tool_parameters is None:
            content = any_text(self._end)
        elif tool_parameters:
            fields = [self._format(each) for each in tool_parameters]
            content = separated(fields, self.field_separator, [each.is_required for each in tool_parameters])
        else:
            content = literal("")
        return tag(f"{self.begin}{tool['name']}{self.name_end}", content, self.end)

    def _format(self, parameter: Parameter) -> Format:
        begin, schema = literal(f"{self.key_begin}{parameter.name}{self.key_end}"), parameter.schema
        has_choices = isinstance(schema, dict) and schema.get("enum")
        if self.is_json or not is_text(schema):
            return sequence(begin, value(schema), literal(self.value_end))
        if has_choices and isinstance(schema, dict):
            return sequence(begin, one_of([literal(str(each)) for each in schema["enum"]]), literal(self.value_end))
        return sequence(begin, any_text("\n", self._end), literal(self.value_end))


def _word(reader: Reader) -> Steps[str]:
    """Read a name or key, empty if none follows."""
    while True:
        word = _WORD.match(reader.text, reader.at)
        end = word.end() if word else reader.at
        if end < len(reader.text) or reader.closed:
            if reader.cut and end == len(reader.text):
                raise EndOfText
            return reader.take(end - reader.at)
        yield from reader.wait()


def _skip(reader: Reader, text: str) -> Steps[None]:
    """Skip the words of `text` that follow."""
    for each in text.split():
        yield from reader.skip_space()
        yield from reader.accept(each)
