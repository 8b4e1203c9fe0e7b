"""Calls written as JSON objects: `{"name": ..., "arguments": {...}}`, alone or in a list, between markers or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, arguments, literal, one_of, regex, sequence, tag, tags
from responses_app.dialects.formats.base import SectionSyntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.tool_call_json import STRING_ENDS, ToolCallJsonParser
from responses_app.protocol.output_problems import CALL_WITHOUT_NAME, TEXT_IN_CALL

_ID = one_of([literal(""), sequence(literal(', "id": "'), regex(r"[a-zA-Z0-9]{9}"), literal('"'))])


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """Objects with the name and the arguments of a call.

    `begin` and `end` are the text of a section in the grammar, `separator` stands between two objects, `ends` close the section.
    Without a marker (`needs_declared`) an object is a call if its
    tool is declared, or if tools are declared and it has an object of arguments.
    """

    begin: str
    end: str = ""
    separator: str = ", "
    ends: tuple[str, ...] = ()
    name_key: str = "name"
    arguments_key: str = "arguments"
    # Another key of the arguments that the grammar allows.
    other_arguments_key: str = ""
    # True if the name stands behind the arguments in the grammar; both orders are read.
    has_name_last: bool = False
    # Key of a number before the name.
    number_key: str = ""
    # True if an `id` of nine characters may follow the arguments.
    has_ids: bool = False
    # Markers that may stand before the objects.
    prefixes: tuple[str, ...] = ()
    needs_declared: bool = False
    # True if parallel calls share a section.
    is_block: bool = True

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read objects up to an end marker or other text. Raises NotACall, EndOfText."""
        if self.prefixes:
            yield from reader.skip_space()
            yield from reader.accept(*self.prefixes)
        is_first = True
        begins = [begin] if len(begin) > 1 and begin not in self.prefixes else []
        stops = Markers(*self.ends, *begins, may_overlap=True)
        while True:
            # Small models write closing brackets too many.
            if is_first:
                yield from reader.open_list(only_one=self.needs_declared)
            else:
                yield from reader.skip_space("[]},;")
            calls.commit()
            marks = (*self.ends, *self._between)
            accepted = (yield from reader.accept(*marks)) if marks else None
            if accepted in self.ends:
                return
            if accepted:
                yield from reader.skip_space()
            if (yield from reader.peek()) != "{":
                if is_first:
                    raise NotACall
                return
            yield from self._object(reader, calls, stops)
            is_first = False

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (*self.prefixes, *self.ends, *self._between)

    @property
    def _between(self) -> tuple[str, ...]:
        """Marker between two objects."""
        return tuple(filter(None, (self.separator.strip(" \n,;"),)))

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        first = f'{{"{self.arguments_key}": ' if self.has_name_last else f'{{"{self.name_key}": "'
        return self.begin.rstrip() or first

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tag of a section with all calls, or a tag of each call."""
        if not self.is_block or not self.begin:
            ends = (f"{self.end}\n", self.end) if self.begin else (self.end,)
            return [self._tag(tool, self.begin, *ends) for tool in tools]
        calls = tags([self._tag(tool) for tool in tools], self.separator, only_one=only_one)
        return [tag(self.begin, calls, self.end)]

    def _tag(self, tool: Tool, before: str = "", *after: str) -> Format:
        ends = [f"}}{each}" for each in after or ("",)]
        if self.has_name_last:
            named = literal(f', "{self.name_key}": "{tool["name"]}"')
            return tag(f'{before}{{"{self.arguments_key}": ', sequence(arguments(dict(tool)), named), *ends)
        name = f'"{self.name_key}": "{tool["name"]}", '
        key = one_of([literal(f'"{each}": ') for each in (self.arguments_key, self.other_arguments_key) if each])
        content = sequence(key, arguments(dict(tool)), *([_ID] if self.has_ids else []))
        if self.number_key:
            number = sequence(one_of([literal("0"), regex(r"\d{1,3}")]), literal('", '))
            head = sequence(regex(" {0,8}"), literal(f'{before}{{"{self.number_key}": "'), number, literal(name))
            return tag("", sequence(head, content), *ends)
        return tag(f"{before}{{{name}", content, *ends)

    def _object(self, reader: Reader, calls: CallWriter, stops: Markers) -> Steps[None]:
        parser = ToolCallJsonParser()
        try:
            yield from self._parse(reader, calls, stops, parser)
        except EndOfText:
            self._end(reader, calls, stops, parser)
            raise

    def _end(self, reader: Reader, calls: CallWriter, stops: Markers, parser: ToolCallJsonParser) -> None:
        """Handle the end of the generation: a call that was cut behind the name is a call, a marker cut off is no argument."""
        if calls.is_open:
            is_marker = not parser.quoted and stops.begins(reader.unread)
            calls.write("" if is_marker else reader.take(len(reader.unread)))
            calls.add_misplaced(parser.misplaced)
        elif reader.cut and parser.name and not (self.needs_declared and not self._is_certain(parser, calls)):
            calls.open(parser.name)
            calls.add_misplaced(parser.misplaced)

    def _parse(self, reader: Reader, calls: CallWriter, stops: Markers, parser: ToolCallJsonParser) -> Steps[None]:
        while True:
            reader.at = parser.feed(reader.text, reader.at)
            self._write(parser, calls)
            if parser.over:
                return
            if reader.at == len(reader.text):
                yield from reader.wait_in_string(STRING_ENDS) if parser.is_in_argument else reader.wait()
            elif stops.match(reader.text, reader.at):
                self._stop(calls, parser)
                return
            elif stops.begins(reader.unread) and not reader.closed:
                yield from reader.wait()
            else:
                before = reader.at
                reader.at = parser.feed(reader.text, reader.at, literal=True)
                if reader.at == before and not parser.over:  # half of an escape
                    yield from reader.wait()

    def _write(self, parser: ToolCallJsonParser, calls: CallWriter) -> None:
        """Write the part of the call that is certain. Raises NotACall."""
        if parser.called and not calls.is_open:
            if self.needs_declared and not self._is_certain(parser, calls):
                raise NotACall
            calls.open(parser.name)
        if parser.broken and not calls.is_open:
            raise NotACall(CALL_WITHOUT_NAME if parser.nameless else TEXT_IN_CALL)
        if calls.is_open:
            calls.write(parser.take())
            if parser.over:
                calls.add_misplaced(parser.misplaced)
                calls.close()

    def _is_certain(self, parser: ToolCallJsonParser, calls: CallWriter) -> bool:
        """Return True if an object without a marker is a call: of a declared tool, or with an object of arguments."""
        return calls.is_declared(parser.name) or (calls.has_tools and parser.has_object)

    def _stop(self, calls: CallWriter, parser: ToolCallJsonParser) -> None:
        """End a call at a marker inside of the object. Raises NotACall."""
        if not calls.is_open:
            raise NotACall
        calls.add_misplaced(parser.misplaced)
        calls.close()


@dataclass(frozen=True, slots=True)
class KeyedCalls(SectionSyntax):
    """List of objects with the name of the tool as key: `[{"get_weather": {"city": "Oslo"}}]`."""

    begin: str
    end: str
    ends: tuple[str, ...]

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read the list up to the end marker. Raises NotACall, EndOfText."""
        ends = Markers(*self.ends)
        while True:
            yield from reader.skip_space("[],")
            calls.commit()
            if (yield from reader.accept(*self.ends)):
                return
            if (yield from reader.accept('{"', '{ "')) is None:
                raise NotACall
            name, _ = yield from reader.read_until(Markers('"'))
            yield from reader.skip_space(":")
            calls.open(name)
            yield from reader.pass_json(ends, calls.write)
            calls.close()
            yield from reader.skip_space("}")

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return self.ends

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tag of a section."""
        objects = [tag(f'{{"{tool["name"]}": ', arguments(dict(tool)), "}") for tool in tools]
        return [tag(self.begin, tags(objects, ", ", only_one=only_one), self.end)]
