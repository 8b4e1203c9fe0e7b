"""Edits of JSON with comments and trailing commas, as editors write settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from responses_app.connect.edits.errors import CannotEdit

Step: TypeAlias = str | Mapping[str, str]
"""Key of an object, or the keys and values by which an object in an array is found."""

_SKIPPED: Final = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|[-+\w.]+')


@dataclass(slots=True)
class _Node:
    """Value in a text, from `start` to `end`. `children` are the members of an object or the elements of an array."""

    start: int
    end: int
    value: Any
    children: list[tuple[str, _Node]] = field(default_factory=list)


def set_value(text: str, path: Sequence[Step], value: Any) -> str:
    """Set the value at `path`, indented as the text is, and add what is missing on the way. Raises CannotEdit."""
    if not text[_skip(text, 0) :]:
        return text + json.dumps(_nested(path, value), indent=2, ensure_ascii=False) + "\n"
    node = _parse(text)
    unit = _unit(text, node.start)
    for depth, step in enumerate(path):
        child = _find(node, step)
        if child is None:
            return _insert(text, node, step, _nested(path[depth + 1 :], value), (depth, unit))
        node = child
    return text[: node.start] + _dump(value, len(path), unit) + text[node.end :]


def _unit(text: str, start: int) -> str:
    """Return the white space before the first value in the object or array at `start`, two blanks if it begins no line."""
    at = _skip(text, start + 1)
    line = text.rfind("\n", start, at) + 1
    return text[line:at] if line and text[line:at].isspace() else "  "


def parse(text: str) -> Any:
    """Return the value of a text, None for an empty text. Raises CannotEdit."""
    return _parse(text).value if text[_skip(text, 0) :] else None


def _parse(text: str) -> _Node:
    node = _value(text, _skip(text, 0))
    end = _skip(text, node.end)
    if end < len(text):
        raise _unexpected(text, end)
    return node


def _value(text: str, at: int) -> _Node:
    opening = text[at : at + 1]
    if opening in ("{", "["):
        return _container(text, at, "}" if opening == "{" else "]")
    match = _SCALAR.match(text, at)
    try:
        return _Node(at, match.end(), json.loads(match[0])) if match else _raise(text, at)
    except ValueError:
        raise _unexpected(text, at) from None


def _container(text: str, start: int, closing: str) -> _Node:
    node = _Node(start, start, {} if closing == "}" else [])
    at = _skip(text, start + 1)
    while text[at : at + 1] != closing:
        key = ""
        if closing == "}":
            name = _value(text, at)
            key, at = str(name.value), _skip(text, name.end)
            at = _skip(text, _expect(text, at, ":"))
        child = _value(text, at)
        node.children.append((key, child))
        at = _skip(text, child.end)
        if text[at : at + 1] != closing:
            at = _skip(text, _expect(text, at, ","))
    node.end = at + 1
    values = [(key, child.value) for key, child in node.children]
    node.value = dict(values) if closing == "}" else [value for _, value in values]
    return node


def _find(node: _Node, step: Step) -> _Node | None:
    if isinstance(step, str):
        if not isinstance(node.value, dict):
            raise CannotEdit(f"the place of {step!r} is no object")
        return next((child for key, child in reversed(node.children) if key == step), None)
    if not isinstance(node.value, list):
        raise CannotEdit("the place of an entry is no array")
    return next(
        (child for _, child in node.children if isinstance(child.value, dict) and step.items() <= child.value.items()), None
    )


def _insert(text: str, node: _Node, step: Step, value: Any, indent: tuple[int, str]) -> str:
    """Insert a value into a node. `indent` is the depth of the node, and the white space of a level."""
    depth, unit = indent
    key = f"{json.dumps(step)}: " if isinstance(step, str) else ""
    added = f"\n{unit * (depth + 1)}{key}{_dump(value, depth + 1, unit)}"
    if not node.children:
        return f"{text[: node.start + 1]}{added}\n{unit * depth}{text[node.end - 1 :]}"
    last = node.children[-1][1].end
    comma = _skip(text, last)
    # Behind a trailing comma, and behind a comment in the line of the last value.
    at = comma + 1 if text[comma] == "," else last
    line = re.compile(r"[ \t]*//[^\n]*").match(text, at)
    after = line.end() if line else at
    return f"{text[:last]}{'' if at > last else ','}{text[last:after]}{added}{text[after:]}"


def _nested(path: Sequence[Step], value: Any) -> Any:
    for step in reversed(path):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _dump(value: Any, depth: int, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + unit * depth)


def _skip(text: str, at: int) -> int:
    match = _SKIPPED.match(text, at)
    return match.end() if match else at


def _expect(text: str, at: int, character: str) -> int:
    if text[at : at + 1] != character:
        raise _unexpected(text, at)
    return at + 1


def _raise(text: str, at: int) -> _Node:
    raise _unexpected(text, at)


def _unexpected(text: str, at: int) -> CannotEdit:
    line = text.count("\n", 0, at) + 1
    return CannotEdit(
        f"line {line} is no JSON: {text[at : at + 20].splitlines()[0]!r}" if text[at:] else "the JSON ends too early"
    )
