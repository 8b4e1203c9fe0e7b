"""Limits of every JSON schema, strict or not: no `$ref` cycles, and a size that compiles in seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from responses_app.schemas.json_schema.size import too_large
from responses_app.validation.errors import shorten


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
