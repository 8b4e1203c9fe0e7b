"""Calls of Gemma 4: `call:name{key:<|"|>text<|"|>,number:1,list:[true]}`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from responses_app.dialects.formats.calls import CallWriter, NotACall, json_string_part
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.formats.syntaxes.grammar import parameters, separated
from responses_app.dialects.formats.syntaxes.values import json_or_text, types_of

_BEGIN, _END, _QUOTE = "<|tool_call>", "<tool_call|>", '<|"|>'
_HEAD_ENDS = Markers("{", "(", _END)
_SCALAR_ENDS = Markers(",", "}", "]", ")", _END)
_KEY_ENDS = Markers(":", _END)
Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class GemmaCalls:
    """Syntax of the calls of Gemma 4, one in each section."""

    def read(self, reader: Reader, calls: CallWriter, _begin: str) -> Steps[None]:
        """Read a call. Raises NotACall, EndOfText."""
        yield from reader.skip_space()
        yield from reader.accept("call:", ":")
        name, stop = yield from reader.read_until(_HEAD_ENDS)
        if stop == _END and not name.strip():
            raise NotACall
        calls.open(name.strip())
        if stop == _END:
            calls.write("{}")
        else:
            yield from _object(reader, calls.write)
        calls.close()
        yield from reader.skip_space(")}")
        yield from reader.accept(_END)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (_QUOTE,)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return _BEGIN

    @property
    def separator(self) -> str:
        """Text between two calls."""
        return ""

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:  # noqa: ARG002
        """Return the tags of the calls."""
        return [tag(f"{_BEGIN}call:{tool['name']}", _object_format(tool), _END) for tool in tools]


def _object(reader: Reader, write: Write) -> Steps[None]:
    """Read the properties of an object behind the opening brace, as JSON."""
    separator = "{"
    while True:
        yield from reader.skip_space(",")
        if reader.closed and not reader.cut and reader.at == len(reader.text):
            write("{}" if separator == "{" else "}")
            raise EndOfText
        if (yield from reader.accept("}", ")")):
            break
        if reader.text.startswith(_END, reader.at):
            break
        key, stop = yield from reader.read_until(_KEY_ENDS)
        if stop == _END:
            reader.at -= len(_END)
            break
        write(f"{separator}{json.dumps(key.strip().removeprefix(_QUOTE).removesuffix(_QUOTE), ensure_ascii=False)}: ")
        separator = ", "
        yield from _value(reader, write)
    write("{}" if separator == "{" else "}")


def _value(reader: Reader, write: Write) -> Steps[None]:
    yield from reader.skip_space()
    found = yield from reader.accept(_QUOTE, "{", "[")
    if found == _QUOTE:
        yield from _string(reader, write)
    elif found == "{":
        yield from _object(reader, write)
    elif found == "[":
        yield from _array(reader, write)
    else:
        text, stop = yield from reader.read_until(_SCALAR_ENDS)
        reader.at -= len(stop)
        write(json_or_text(text.strip()))


def _string(reader: Reader, write: Write) -> Steps[None]:
    write('"')
    try:
        yield from reader.pass_until(Markers(_QUOTE, _END), lambda text: write(json_string_part(text)))
    except EndOfText:
        if not reader.cut:
            write('"')
        raise
    write('"')


def _array(reader: Reader, write: Write) -> Steps[None]:
    separator = "["
    while True:
        yield from reader.skip_space(",")
        if (yield from reader.accept("]")):
            break
        if reader.text.startswith((_END, "}"), reader.at):
            break
        write(separator)
        separator = ", "
        yield from reader.peek()
        yield from _value(reader, write)
    write("[]" if separator == "[" else "]")


# Grammar

_SCALARS = {"integer": r"-?\d+", "number": r"-?\d+(\.\d+)?([eE][+-]?\d+)?", "boolean": "true|false", "null": "null"}


def _object_format(tool: Tool) -> Format:
    found = parameters(tool)
    if found is None:
        return sequence(literal("{"), any_text("}", _END), literal("}"))
    items = [sequence(literal(f"{each.name}:"), _value_format(each.schema)) for each in found]
    return sequence(literal("{"), separated(items, ",", sum(each.is_required for each in found)), literal("}"))


def _value_format(schema: object) -> Format:
    if not isinstance(schema, Mapping):
        return any_text("}", _END)
    if isinstance(schema.get("enum"), list):
        return one_of([literal(_written(value)) for value in schema["enum"]])
    formats = [_type_format(name, schema) for name in sorted(types_of(schema))]
    return one_of(formats)


def _type_format(name: str, schema: Mapping[str, object]) -> Format:
    if name == "string":
        return tag(_QUOTE, any_text(_QUOTE), _QUOTE)
    if name == "object":
        return _object_format({"parameters": schema})
    if name == "array":
        item = _value_format(schema.get("items"))
        return sequence(literal("["), optional(tags([tag("", item, "")], ",", only_one=False)), literal("]"))
    return regex(_SCALARS[name])


def _written(value: object) -> str:
    return f"{_QUOTE}{value}{_QUOTE}" if isinstance(value, str) else json.dumps(value)
