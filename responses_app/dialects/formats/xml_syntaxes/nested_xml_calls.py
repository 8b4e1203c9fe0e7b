"""Calls with nested elements, each tag behind a namespace marker: `<invoke name="f">`, then an element for each parameter."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
from responses_app.dialects.formats.calls import CallWriter, NotACall, ended, json_string_part, written_object
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import SCALARS, parameters
from responses_app.dialects.formats.values import is_text, to_json, types_of

_MAX_DEPTH = 50
_ITEM = "item"


@dataclass(slots=True)
class _Element:
    """Element of a value: its text, and its child elements in order."""

    text: str = ""
    children: list[tuple[str, _Element]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class NestedXmlCalls(SectionSyntax):
    """Section of calls of MiniMax-M3. Objects and lists are elements in elements, the elements of a list are called `item`."""

    mark: str
    section: str = "tool_call"

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read calls up to the end of the section, or to other text. Raises NotACall, EndOfText."""
        marker: str | None = begin
        if begin == self.begin:
            yield from reader.skip_space()
            marker = yield from reader.accept(self.call_open, self.end)
        if marker is None:
            raise NotACall
        while marker == self.call_open:
            body = _Body(self.mark, self.section, reader, calls)
            yield from body.read()
            if body.stop == f"</{self.section}>":
                return
            yield from reader.skip_space()
            marker = yield from reader.accept(self.call_open, self.end)

    @property
    def begin(self) -> str:
        """Start tag of a section."""
        return f"{self.mark}<{self.section}>"

    @property
    def end(self) -> str:
        """End tag of a section."""
        return f"{self.mark}</{self.section}>"

    @property
    def call_open(self) -> str:
        """Start tag of a call up to the name."""
        return f"{self.mark}<invoke name="

    @property
    def call_close(self) -> str:
        """End tag of a call."""
        return f"{self.mark}</invoke>"

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (self.mark, self.begin, self.end, self.call_open, self.call_close)

    @property
    def separator(self) -> str:
        """Text between two sections."""
        return "\n"

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return a tag of a section with all calls."""
        calls = [
            tag(f'{self.call_open}"{tool["name"]}">', self._object_format(tool, self.call_close), self.call_close)
            for tool in tools
        ]
        return [tag(f"{self.begin}\n", tags(calls, "\n", only_one=only_one), f"\n{self.end}")]

    # Grammar

    def _object_format(self, tool: Tool, end: str) -> Format:
        tool_parameters = parameters(tool)
        if tool_parameters is None:
            return any_text(end)
        elements = [self._element_format(each.name, each.schema) for each in tool_parameters]
        return sequence(
            literal(""),
            *(
                element if each.is_required else optional(element)
                for each, element in zip(tool_parameters, elements, strict=True)
            ),
        )

    def _element_format(self, name: str, schema: object) -> Format:
        end = f"{self.mark}</{name}>"
        return tag(f"{self.mark}<{name}>", self._value_format(schema, end), end)

    def _value_format(self, schema: object, end: str) -> Format:
        if not isinstance(schema, Mapping):
            return any_text(end)
        if isinstance(schema.get("enum"), list):
            return one_of([literal(self._written(value)) for value in schema["enum"]])
        return one_of([self._type_format(name, schema, end) for name in sorted(types_of(schema))])

    def _type_format(self, name: str, schema: Mapping[str, Any], end: str) -> Format:
        if name == "object":
            return self._object_format({"parameters": schema}, end)
        if name == "array":
            item = tag(f"{self.mark}<{_ITEM}>", self._value_format(schema.get("items"), end), f"{self.mark}</{_ITEM}>")
            return optional(tags([item], "", only_one=False))
        return any_text(self.mark) if name == "string" else regex(SCALARS[name])

    def _written(self, value: object) -> str:
        """Write a value in elements."""
        if isinstance(value, Mapping):
            return "".join(self._tagged(str(name), each) for name, each in value.items())
        if isinstance(value, list):
            return "".join(self._tagged(_ITEM, each) for each in value)
        return value if isinstance(value, str) else json.dumps(value)

    def _tagged(self, name: str, value: object) -> str:
        return f"{self.mark}<{name}>{self._written(value)}{self.mark}</{name}>"


class _Body:
    """Inside of a call. `stop` is the end tag that ended the call, empty before."""

    def __init__(self, mark: str, section: str, reader: Reader, calls: CallWriter) -> None:
        self.stop = ""
        self._mark = Markers(mark)
        self._text = mark
        self._stops = ("</invoke>", f"</{section}>")
        self._reader = reader
        self._calls = calls

    def read(self) -> Steps[None]:
        """Read the name and the parameters. Raises NotACall, EndOfText."""
        head, _ = yield from self._reader.read_until(Markers(">"))
        name = head.strip().strip("\"'")
        self._calls.open(name)
        with written_object(self._reader, self._calls.write) as writer:
            while (key := (yield from self._key())) is not None:
                writer.key(key)
                yield from self._parameter(key, self._calls.properties(name).get(key))
        self._calls.close()

    def _key(self) -> Steps[str | None]:
        """Read the start tag of a parameter; None at the end of the call."""
        while not self.stop:
            text, _ = yield from self._reader.read_until(self._mark)
            self._calls.add_misplaced(text)
            accepted = yield from self._reader.accept(*self._stops, "<")
            if accepted == "<":
                name, _ = yield from self._reader.read_until(Markers(">"))
                return name.strip()
            self.stop = accepted or ""
        return None

    def _parameter(self, key: str, schema: object) -> Steps[None]:
        if is_text(schema):
            yield from self._string(key)
            return
        element = yield from self._element(key, 0)
        self._calls.write(_convert(element, schema, self._calls))

    def _string(self, name: str) -> Steps[None]:
        """Pass a string on at once, up to the end tag of the element, or of the call."""
        write = self._calls.write
        write('"')
        with ended(self._reader, lambda: write('"')):
            while True:
                yield from self._reader.pass_until(self._mark, lambda text: write(json_string_part(text)))
                if (yield from self._is_end(name)):
                    break
                write(json_string_part(self._text))

    def _is_end(self, name: str) -> Steps[bool]:
        """Read the end tag of an element, or of the call. Raises EndOfText."""
        accepted = yield from self._reader.accept(f"</{name}>", *self._stops)
        if accepted in self._stops and accepted != f"</{name}>":
            self.stop = accepted
        return accepted is not None

    def _element(self, name: str, depth: int) -> Steps[_Element]:
        """Read the inside of an element; the end of the generation ends the element too, unless cut off."""
        element, parts = _Element(), list[str]()
        try:
            yield from self._inside(element, parts, name, depth)
        except EndOfText:
            if self._reader.cut:
                raise
            self._calls.add_misplaced(self._reader.unfinished)
            self._reader.unfinished = ""
        element.text = "".join(parts)
        return element

    def _inside(self, element: _Element, parts: list[str], name: str, depth: int) -> Steps[None]:
        while not self.stop:
            yield from self._reader.pass_until(self._mark, parts.append)
            if (yield from self._is_end(name)):
                return
            if depth == _MAX_DEPTH or not (yield from self._reader.accept("<")):
                parts.append(self._text)
                continue
            child, _ = yield from self._reader.read_until(Markers(">"))
            inside = yield from self._element(child.strip(), depth + 1)
            element.children.append((child.strip(), inside))


def _convert(element: _Element, schema: object, calls: CallWriter) -> str:
    """Convert an element to JSON by the schema. Text between child elements is misplaced."""
    kind, container = _container(schema)
    if not element.children:
        is_empty = kind and not element.text.strip() and "string" not in types_of(schema)
        return ("[]" if kind == "array" else "{}") if is_empty else to_json(element.text, schema)
    calls.add_misplaced(element.text)
    is_list = kind == "array" or (not kind and all(name == _ITEM for name, _ in element.children))
    if is_list:
        for name, _ in element.children:
            calls.add_misplaced("" if name == _ITEM else name)
        return f"[{', '.join(_convert(each, container.get('items'), calls) for _, each in element.children)}]"
    return f"{{{', '.join(_properties(element, container, calls))}}}"


def _properties(element: _Element, schema: Mapping[str, Any], calls: CallWriter) -> Iterator[str]:
    """Yield the properties of an object as JSON. Elements of the same name are a list."""
    known = schema.get("properties")
    values: dict[str, list[str]] = {}
    for name, each in element.children:
        child = known.get(name) if isinstance(known, Mapping) else None
        values.setdefault(name, []).append(_convert(each, child, calls))
    for name, texts in values.items():
        value = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        yield f"{json.dumps(name, ensure_ascii=False)}: {value}"


def _container(schema: object) -> tuple[str, Mapping[str, Any]]:
    """Return `array` or `object` with the schema of the container, from the first alternative that is a container."""
    if not isinstance(schema, Mapping):
        return "", {}
    alternatives = [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key) or ()]
    for alternative in alternatives:
        if (container := _container(alternative))[0]:
            return container
    kinds = types_of(schema) & {"array", "object"}
    return (min(kinds), schema) if kinds and not alternatives else ("", {})
