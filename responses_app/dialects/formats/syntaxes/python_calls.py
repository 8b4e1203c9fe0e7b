"""Calls written as Python: `[get_weather(city="Oslo"), clock()]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format, any_text, literal, one_of, sequence, tag, tags
from responses_app.dialects.formats.base import Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, ended, written_object
from responses_app.dialects.formats.reader import Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import parameters, separated
from responses_app.dialects.formats.syntaxes.python_values import PythonValueScanner, python_to_json, python_value

_NAME = re.compile(r"[A-Za-z_][\w.\-]*\Z")
_BREAK = one_of([literal(""), literal("\n")])
_HEAD_ENDS = Markers("(", "=", ")", ",", "[", "]", " ", "<", '"')


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """Calls with keyword arguments. `begin` and `end` are the text of a section in the grammar, `ends` close the section.

    Without a marker (`needs_declared`) only calls of declared tools are calls, with `prefix` behind this text. The text
    `call_begin`, as `print(api.`, may stand before a name, and `call_end` behind the call.
    """

    begin: str = "["
    end: str = "]"
    separator: str = ", "
    ends: tuple[str, ...] = ()
    needs_declared: bool = False
    prefix: str = ""
    call_begin: str = ""
    call_end: str = ""

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read calls up to the end of the section. Raises NotACall, EndOfText."""
        if self.prefix:
            yield from reader.accept(self.prefix)
        yield from reader.open_list(only_one=self.needs_declared)
        while True:
            yield from self._call(reader, calls)
            yield from reader.skip_space(",;")
            calls.commit()
            stop = yield from reader.accept("]", *self.ends)
            if stop == "]":
                yield from self._skip_end(reader)
            if stop is not None:
                return
            if reader.closed and reader.at == len(reader.text):
                return

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return self.ends

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.begin

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tag of a section. Without a marker a list in brackets is a section too."""
        one = [tag(f"{self.call_begin}{tool['name']}(", _arguments(tool), f"){self.call_end}") for tool in tools]
        calls = tags(one, self.separator, only_one=only_one)
        # Calls in lines of their own may have line breaks around.
        content = sequence(_BREAK, calls, _BREAK) if self.separator == "\n" else calls
        bare = [tag("[", content, "]")] if self.needs_declared and self.begin != "[" and not self.prefix else []
        return [tag(self.begin, content, self.end), *bare]

    def _skip_end(self, reader: Reader) -> Steps[None]:
        """Skip the marker behind the closing bracket."""
        if self.ends:
            yield from reader.skip_space()
            yield from reader.accept(*self.ends)

    def _call(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        if self.call_begin:
            yield from reader.skip_space()
            yield from reader.accept(self.call_begin)
        name, stop = yield from reader.read_until(_HEAD_ENDS)
        if stop != "(" or not _NAME.match(name) or (self.needs_declared and not calls.is_declared(name)):
            raise NotACall
        calls.open(name)
        with written_object(reader, calls.write) as writer:
            while (yield from self._argument(reader, calls, writer)):
                pass
        calls.close()
        if self.call_end:
            yield from reader.accept(self.call_end)

    def _argument(self, reader: Reader, calls: CallWriter, writer: ObjectWriter) -> Steps[bool]:
        """Read an argument, or the end of the call; return True if more arguments may follow."""
        yield from reader.skip_space(",")
        if (yield from reader.accept(")")):
            return False
        key, stop = yield from reader.read_until(Markers("=", ")", *self.ends))
        if stop != "=":
            calls.add_misplaced(key)
            reader.at -= len(stop)
            return stop == ")"
        parts: list[str] = []

        def end() -> None:
            writer.key(key.strip())
            calls.write(python_to_json("".join(parts)))

        with ended(reader, end, lambda: f"{key}={''.join(parts)}"):
            yield from self._value(reader, parts.append)
        return True

    def _value(self, reader: Reader, emit: Callable[[str], None]) -> Steps[None]:
        """Pass on the text of a value, up to a comma or the closing parenthesis. Raises EndOfText."""
        scanner = PythonValueScanner(self.call_end)
        while True:
            count, is_end = scanner.read(reader.unread, closed=reader.closed and not reader.cut)
            emit(reader.take(count))
            if is_end:
                return
            yield from reader.wait()


def _arguments(tool: Tool) -> Format:
    tool_parameters = parameters(tool)
    if tool_parameters is None:
        return any_text(")")
    items = [sequence(literal(f"{each.name}="), python_value(each.schema)) for each in tool_parameters]
    return separated(items, ", ", [each.is_required for each in tool_parameters])
