"""Schemas and grammars that are to be obeyed, compiled before anything runs; the one that cannot be is named, with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from responses_app.dialects import tags
from responses_app.engines.border import BadPrompt, Constraint, Engine
from responses_app.errors import Invalid
from responses_app.runs.order import Order

# What a compiler says of itself: the time, and the line of its source.
_SOURCE = re.compile(r"^.*\.cc:\d+: ", re.DOTALL)


def check(engine: Engine, order: Order, constraint: Constraint | None) -> None:
    """A strict schema must be obeyed in full. Raises Invalid."""
    schema = order.format.get("schema")
    try:
        if schema is not None and order.format.get("strict"):
            engine.check(Constraint("json", schema))
        if constraint is not None:
            engine.check(constraint)
    except BadPrompt as error:
        raise _blamed(engine, order, error) from error


def _blamed(engine: Engine, order: Order, error: BadPrompt) -> Invalid:
    """An answer is constrained by one tag of all schemas, and a compiler says of that no more than yes or no."""
    for where, schema in _schemas(order):
        if _refused(engine, Constraint("structural_tag", _alone(schema))) is not None:
            return _invalid(where, _refused(engine, Constraint("json", schema)) or error)
    return _invalid("text.format.schema" if "schema" in order.format else "tools", error)


def _schemas(order: Order) -> Iterator[tuple[str, dict[str, Any]]]:
    if order.format.get("schema") is not None:
        yield "text.format.schema", dict(order.format["schema"])
    for index, tool in enumerate(order.tools):
        for at, one in [("", tool), *((f".tools[{n}]", inside) for n, inside in enumerate(tool.get("tools") or ()))]:
            if isinstance(one.get("parameters"), Mapping):
                yield f"tools[{index}]{at}.parameters", dict(one["parameters"])


def _alone(schema: Mapping[str, Any]) -> str:
    return json.dumps({"type": "structural_tag", "format": tags.json_value(schema)})


def _refused(engine: Engine, constraint: Constraint) -> BadPrompt | None:
    try:
        engine.check(constraint)
    except BadPrompt as error:
        return error
    return None


def _invalid(where: str, error: BadPrompt) -> Invalid:
    code = "invalid_json_schema" if where.startswith("text") else "invalid_function_parameters"
    reason = " ".join(_SOURCE.sub("", str(error)).split())
    return Invalid(f"Invalid schema: {reason}", param=where, code=code)
