"""Limits of strict schemas: the largest accepted values, and values beyond."""

from __future__ import annotations

import time
from typing import Any

import pytest

from responses_app.schemas.json_schema.strict import strict_problem


def schema(**properties: Any) -> dict[str, Any]:
    """An object with these properties, strict."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nested(levels: int) -> dict[str, Any]:
    """So many objects, one in the other, and a text in the innermost."""
    made: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        made = schema(a=made)
    return made


LONG = {"enum": ["x" * 60 for _ in range(250)]}
LIMITS = [
    (nested(10), nested(11), "levels"),
    (
        schema(**{f"p{n}": {"type": "string"} for n in range(5000)}),
        schema(**{f"p{n}": {"type": "string"} for n in range(5001)}),
        "properties",
    ),
    (schema(a={"enum": list(range(1000))}), schema(a={"enum": list(range(999))}, b={"enum": [1, 2]}), "1000 values"),
    (schema(a={"enum": [*LONG["enum"]]}), schema(a={"enum": [*LONG["enum"], "x"]}), "15000 characters"),
    (schema(a={"const": "x" * 119_999}), schema(a={"const": "x" * 120_000}), "120000 characters"),
]


@pytest.mark.parametrize(("fits", "too_much", "sentence"), LIMITS)
def test_a_limit_is_the_last_that_fits(fits: dict[str, Any], too_much: dict[str, Any], sentence: str) -> None:
    assert strict_problem(fits) is None
    assert sentence in (strict_problem(too_much) or "")


def test_names_are_looked_up_in_time_linear_in_their_number() -> None:
    properties = {f"p{n}": {"type": "string"} for n in range(5_000)}
    required = [*(f"x{n}" for n in range(100_000)), *properties]
    began = time.process_time()
    assert (
        strict_problem({"type": "object", "properties": properties, "required": required, "additionalProperties": False})
        is None
    )
    assert time.process_time() - began < 3
