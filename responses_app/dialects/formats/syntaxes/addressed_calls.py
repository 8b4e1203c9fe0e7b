"""Calls that begin with the name of a tool in a line or tag of the own: the forms of Functionary and CWM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from responses_app.dialects.constraints.structural_tag import Format, any_text, arguments, one_of, tag
from responses_app.dialects.formats.base import SectionSyntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall, ObjectWriter, ended, json_string_part
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.values import is_text

_RECIPIENT = ">>>"
_RECIPIENT_ENDS = Markers("\n", " ", "{", "(", "<", ">", '"')
_TOOL_END = "</tool>"
_NAME_ENDS = Markers(">", "\n", "<")
# Label in the place of a name: the name is the first word of the call.
_ANY_TOOL = "function"


@dataclass(frozen=True, slots=True)
class RecipientCalls(SectionSyntax):
    """Messages `>>>recipient` with a line break: JSON for a tool, text for the recipient `all`.

    The prompt ends with the first `>>>`, so the first call may begin with the name.
    """

    everyone: str = "all"

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read the head of a message, and the call. Raises NotACall, EndOfText."""
        is_first = reader.position == 0
        while (yield from reader.accept(_RECIPIENT)):
            pass
        start = reader.position
        try:
            name, stop = yield from reader.read_until(_RECIPIENT_ENDS)
        except EndOfText:
            if is_first:
                reader.at -= reader.position - start
            raise
        if stop == "\n" and name == self.everyone:
            return
        if stop == "\n" and calls.is_declared(name):
            yield from reader.skip_space()
            calls.open(name)
            yield from reader.pass_json(Markers(_RECIPIENT), calls.write)
            calls.close()
        elif is_first:
            reader.at -= reader.position - start
        else:
            raise NotACall

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return ()

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return _RECIPIENT

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002 (the caller limits the calls)
        """Return the tags of the calls, and of a first call behind a prompt that ends with the marker."""
        return [tag(f"{begin}{tool['name']}\n", arguments(dict(tool)), "") for begin in (_RECIPIENT, "") for tool in tools]


@dataclass(frozen=True, slots=True)
class ToolTagCalls(SectionSyntax):
    """Elements `<tool: name>` with JSON, or with the text of the first parameter that is a string."""

    begin: str = "<tool:"

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read a call. Raises NotACall, EndOfText."""
        head, stop = yield from reader.read_until(_NAME_ENDS)
        if stop not in (">", "\n") or not head.strip():
            raise NotACall
        name = head.strip()
        yield from reader.skip_space()
        if name == _ANY_TOOL and not calls.is_declared(name):
            name, stop = yield from reader.read_until(Markers(" ", "\n", _TOOL_END))
            reader.at -= len(stop) if stop == _TOOL_END else 0
            yield from reader.skip_space()
        properties = calls.properties(name)
        is_json = (yield from reader.peek()) == "{"
        calls.open(name)
        if is_json:
            yield from reader.pass_json(Markers(_TOOL_END), calls.write)
            yield from self._end(reader, calls)
        else:
            yield from self._text(reader, calls, properties)
        calls.close()

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (self.begin, _TOOL_END)

    @property
    def separator(self) -> str:
        """Text between two calls."""
        return "\n"

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002 (the caller limits the calls)
        """Return the tags of the calls."""
        return [self._tag(tool) for tool in tools]

    def _tag(self, tool: Tool) -> Format:
        values = arguments(dict(tool))
        schema = tool.get("parameters") or {}
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        is_single = (
            isinstance(properties, Mapping) and len(properties) == 1 and _text_key(properties) and not tool.get("strict")
        )
        content = one_of([values, any_text(_TOOL_END, "{")]) if is_single else values
        return tag(f"{self.begin} {tool['name']}>\n", content, f"\n{_TOOL_END}")

    def _end(self, reader: Reader, calls: CallWriter) -> Steps[None]:
        """Read up to the end of the element: other text is misplaced."""
        extra, _ = yield from reader.read_until(Markers(_TOOL_END))
        reader.unfinished = ""
        calls.add_misplaced(extra)

    def _text(self, reader: Reader, calls: CallWriter, properties: Mapping[str, Any]) -> Steps[None]:
        """Read text as the value of a parameter, without white space at the end."""
        key, writer, held = _text_key(properties) or "input", ObjectWriter(calls.write), ""
        is_empty = True

        def emit(text: str) -> None:
            nonlocal held, is_empty
            visible = (held + text).rstrip()
            if visible and is_empty:
                writer.key(key)
                calls.write('"')
                is_empty = False
            calls.write(json_string_part(visible))
            held = (held + text)[len(visible) :]

        def end() -> None:
            calls.write("" if is_empty else '"')
            writer.end()

        with ended(reader, end):
            yield from reader.pass_until(Markers(_TOOL_END), emit)


def _text_key(properties: Mapping[str, Any]) -> str | None:
    """Return the first parameter that is a string."""
    return next((key for key, schema in properties.items() if is_text(schema)), None)
