"""Limits of every JSON schema, strict or not: no `$ref` cycles, and a size that compiles in seconds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from responses_app.validation.errors import shorten

# With each of these limits xgrammar takes less than about two seconds. They were measured with xgrammar 0.2.8 and the vocabulary of
# demo-chat. Most compile times grow with the square of the count.
MAX_OBJECTS: Final = 8_000
MAX_PROPERTIES: Final = 5_000
MAX_VALUES: Final = 10_000
MAX_LETTERS: Final = 120_000
MAX_OPTIONAL: Final = 1_000
MAX_COUNTED: Final = 100
MAX_LENGTHS: Final = 32
MAX_FORMATS: Final = 200
MAX_PATTERN_LETTERS: Final = 10_000
MAX_REPEAT: Final = 1_000
MAX_REPEATS: Final = 4_000

_REPEAT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")
# Digits of a number in a pattern; a longer number exceeds every limit.
_MAX_DIGITS: Final = 9


def complexity_problem(schema: Mapping[str, Any]) -> str | None:
    """Return the reason why a schema cannot be compiled, or None."""
    nodes = list(_nodes(schema))
    problem = too_large(nodes)
    if problem is not None:
        return problem
    targets = {id(node): list(_implied_schemas(node, schema)) for node in nodes}
    try:
        TopologicalSorter(targets).prepare()
    except CycleError as error:
        circle = set(error.args[1])
        ref = next((node["$ref"] for node in nodes if id(node) in circle and "$ref" in node), "#")
        return f"the '$ref' '{shorten(ref)}' leads back to itself."
    return None


def _nodes(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Iterate over all objects in a schema."""
    level: list[Any] = [schema]
    while level:
        yield from (node for node in level if isinstance(node, dict))
        children = (child for node in level for child in (node.values() if isinstance(node, dict) else node))
        level = [child for child in children if isinstance(child, dict | list)]


def _implied_schemas(node: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[int]:
    """Iterate over the ids of schemas that apply to the same value: `$ref`, `allOf`, and a choice with a single option."""
    ref = node.get("$ref")
    target = _target(root, ref) if isinstance(ref, str) else None
    if target is not None:
        yield id(target)
    for word in ("allOf", "anyOf", "oneOf"):
        parts = node.get(word)
        if isinstance(parts, list) and (word == "allOf" or len(parts) == 1):
            yield from (id(part) for part in parts if isinstance(part, dict))


def _target(root: Mapping[str, Any], ref: str) -> Mapping[str, Any] | None:
    """Return the target of a reference within the schema, or None."""
    if not ref.startswith("#"):
        return None
    node: Any = root
    for step in ref.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict) and key in node:
            node = node[key]
        elif isinstance(node, list) and key.isdecimal() and int(key) < len(node):
            node = node[int(key)]
        else:
            return None
    return node if isinstance(node, dict) else None


def too_large(nodes: Iterable[Mapping[str, Any]]) -> str | None:
    """Return a sentence with the exceeded limit of a schema with these objects, or None."""
    size = _Size()
    for node in nodes:
        size.add(node)
    return next((_sentence(count, what, limit) for count, what, limit in size.counts() if count > limit), None)


def _sentence(count: int, what: str, limit: int) -> str:
    return f"it has {count} {what}; at most {limit} are allowed."


class _Size:
    """Counts of the parts of a schema."""

    def __init__(self) -> None:
        self.objects = self.properties = self.values = self.letters = 0
        self.optional = self.counted = self.formats = 0
        self.lengths: set[tuple[float | None, ...]] = set()
        self.pattern_letters = self.repeat = self.repeats = 0

    def add(self, node: Mapping[str, Any]) -> None:
        """Count an object of the schema, without nested objects."""
        self.objects += 1
        names = node.get("properties")
        if isinstance(names, dict):
            self._add_properties(node, names)
        self._add_values(node)
        lengths = [node.get(key) for key in ("minLength", "maxLength")]
        if any(isinstance(length, int) for length in lengths):
            # A length of another type may have no hash; the compiler refuses it.
            self.lengths.add(tuple(length if isinstance(length, int | float) else None for length in lengths))
        self.formats += isinstance(node.get("format"), str)
        for pattern in _patterns(node):
            self._add_pattern(pattern)

    def counts(self) -> Iterator[tuple[int, str, int]]:
        """Iterate over count, name and limit of each part."""
        yield self.properties, "properties", MAX_PROPERTIES
        yield self.values, "enum values", MAX_VALUES
        yield self.letters, "characters in the names of properties and in the values of enums and constants", MAX_LETTERS
        yield self.optional, "properties that are not required", MAX_OPTIONAL
        yield self.counted, "properties that are not required in objects with 'minProperties' or 'maxProperties'", MAX_COUNTED
        yield len(self.lengths), "different pairs of 'minLength' and 'maxLength'", MAX_LENGTHS
        yield self.formats, "strings with a 'format'", MAX_FORMATS
        yield self.pattern_letters, "characters in patterns", MAX_PATTERN_LETTERS
        yield self.repeat, "repeats of one part of a pattern", MAX_REPEAT
        yield self.repeats, "repeats in all its patterns", MAX_REPEATS
        yield self.objects, "JSON objects", MAX_OBJECTS

    def _add_properties(self, node: Mapping[str, Any], names: Mapping[str, Any]) -> None:
        self.properties += len(names)
        self.letters += sum(map(len, names))
        required = node.get("required")
        required_names = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
        optional = len(names.keys() - required_names)
        self.optional += optional
        if "minProperties" in node or "maxProperties" in node:
            self.counted += optional

    def _add_values(self, node: Mapping[str, Any]) -> None:
        values = node.get("enum")
        if isinstance(values, list | dict):
            self.values += len(values)
            self.letters += sum(map(_length, values))
        if "const" in node:
            self.letters += _length(node["const"])

    def _add_pattern(self, pattern: str) -> None:
        self.pattern_letters += len(pattern)
        for least, most in _REPEAT.findall(pattern):
            bound = most or least
            count = int(bound) if len(bound) <= _MAX_DIGITS else 10**_MAX_DIGITS
            self.repeat = max(self.repeat, count)
            self.repeats += count


def _patterns(node: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node.get("pattern"), str):
        yield node["pattern"]
    if isinstance(node.get("patternProperties"), dict):
        yield from node["patternProperties"]


def _length(value: object) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))
