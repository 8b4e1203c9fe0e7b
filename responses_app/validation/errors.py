"""Pydantic validation errors as API errors: a table of codes, and the JSON path of the invalid field."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from responses_app.errors import InvalidRequest

Loc = Sequence[int | str]

# Pydantic's error types and the expected JSON type.
EXPECTED = {
    "string_type": "a string",
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "bool_type": "a boolean",
    "list_type": "an array",
    "tuple_type": "an array",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "finite_number": "a finite number",
}
# Python types and their names in JSON.
JSON_TYPES: Sequence[tuple[type, str]] = (
    (bool, "a boolean"),
    (int, "an integer"),
    (float, "a decimal"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
    (type(None), "null"),
)
BOUNDS = {
    "greater_than_equal": ("below_min_value", "below minimum value", ">=", "ge"),
    "less_than_equal": ("above_max_value", "above maximum value", "<=", "le"),
}
LENGTHS = {
    "string_too_long": ("string_above_max_length", "string too long", "maximum length", "max_length"),
    "string_too_short": ("string_below_min_length", "string too short", "minimum length", "min_length"),
    "too_long": ("array_above_max_length", "array too long", "maximum length", "max_length"),
    "too_short": ("array_below_min_length", "array too short", "minimum length", "min_length"),
}

# Last step of Pydantic's location of a wrong key of an object.
KEY = "[key]"
# Characters of a key that has quotes in a path.
AMBIGUOUS = re.compile(r'[.\[\]"]')
SHOWN = 200
MAX_INTEGER = 2.0**63


class Missing(ValueError):
    """Required value that a validator of a model has not found."""


class WrongType(ValueError):
    """Value of a wrong type, found by a validator of a model. The message is the expected type."""


def json_path(loc: Loc) -> str:
    """Format a location as a JSON path: `("input", 0, "id")` as `input[0].id`, `("metadata", "a.b")` as `metadata["a.b"]`."""
    text = ""
    for step in loc:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not step or AMBIGUOUS.search(step):
            text += f"[{json.dumps(step, ensure_ascii=False)}]"
        else:
            text += f".{step}" if text else step
    return text


def translate(
    error: ValidationError, base: Loc = (), known: Iterable[str] = (), other_names: Mapping[str, str] | None = None
) -> InvalidRequest:
    """Convert the first validation error to an API error; errors about unknown fields come last.

    `other_names` are names that other APIs have for one of the `known` fields.
    """
    findings = sorted(error.errors(include_url=False), key=lambda one: one["type"] == "extra_forbidden")
    finding: Mapping[str, Any] = findings[0]
    loc = (*base, *finding["loc"])
    if loc[-1:] == (KEY,):
        # A wrong key is an error of its object, as the key may be empty or very long.
        return _length(json_path(loc[:-2]), finding["type"], finding["input"], finding["ctx"], "key")
    where, kind, context = json_path(loc), finding["type"], finding.get("ctx", {})
    if kind == "missing":
        return missing(loc)
    if kind == "extra_forbidden":
        return unknown_parameter(where, str(loc[-1]), known, (other_names or {}).get(where))
    if kind in BOUNDS:
        return _bound(where, kind, finding["input"], context)
    if kind in LENGTHS:
        return _length(where, kind, finding["input"], context)
    if kind == "literal_error" and not isinstance(finding["input"], str):
        return wrong_type(where, f"one of {context['expected']}", finding["input"])
    if kind == "literal_error":
        return invalid_value(where, finding["input"], context["expected"])
    if kind == "value_error":
        return _of_validator(loc, context["error"], finding["input"])
    if kind == "string_pattern_mismatch":
        message = f"Invalid '{where}': string does not match pattern. Expected a string that matches the pattern '{context['pattern']}'."
        return InvalidRequest(message, param=where, code="invalid_value")
    return wrong_type(where, EXPECTED.get(kind, "another type"), finding["input"])


def invalid(loc: Loc, problem: str, code: str = "invalid_value") -> InvalidRequest:
    """Return an error that names the JSON path and the problem, a sentence without its beginning."""
    where = json_path(loc)
    return InvalidRequest(f"Invalid '{where}': {problem}", param=where, code=code)


def wrong_type(where: str, expected: str, value: object) -> InvalidRequest:
    """Return an `invalid_type` error that names the expected and the given type."""
    came = next((word for type_, word in JSON_TYPES if isinstance(value, type_)), "another type")
    if isinstance(value, float) and abs(value) >= MAX_INTEGER:
        # The JSON parser returns a float for an integer of more than 64 bits.
        came = "a number of more than 64 bits"
    message = f"Invalid type for '{where}': expected {expected}, but got {came} instead."
    return InvalidRequest(message, param=where, code="invalid_type")


def missing(loc: Loc) -> InvalidRequest:
    """Return the error for a required parameter that is missing."""
    where = json_path(loc)
    return InvalidRequest(f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")


def missing_type(loc: Loc, value: object) -> InvalidRequest:
    """Return the error for a `type`, a key of the object at `loc`, that is missing or no string."""
    return missing((*loc, "type")) if value is None else wrong_type(json_path((*loc, "type")), "a string", value)


def shorten(value: object) -> str:
    """Cut a value to the length that an error message repeats."""
    text = str(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def invalid_value(where: str, value: object, allowed: Iterable[str] | str) -> InvalidRequest:
    """Return an `invalid_value` error that names the allowed values: an iterable, or a text with their quotes."""
    values = allowed if isinstance(allowed, str) else ", ".join(f"'{name}'" for name in allowed)
    return InvalidRequest(
        f"Invalid value: '{shorten(value)}'. Supported values are: {values}.", param=where, code="invalid_value"
    )


def unknown_parameter(where: str, name: str = "", known: Iterable[str] = (), meant: str | None = None) -> InvalidRequest:
    """Return the error for a parameter that does not exist.

    The message has the parameter that is `meant`, or the one of the `known` names that is nearest to `name`.
    """
    meant = meant or next(iter(difflib.get_close_matches(name, list(known), n=1)), None)
    hint = f" Did you mean '{meant}'?" if meant else ""
    return InvalidRequest(f"Unknown parameter: '{where}'.{hint}", param=where, code="unknown_parameter")


def _of_validator(loc: Loc, problem: ValueError, value: object) -> InvalidRequest:
    """Return the error for what a validator of a model has raised."""
    match problem:
        case Missing():
            return missing(loc)
        case WrongType():
            return wrong_type(json_path(loc), str(problem), value)
    return invalid(loc, str(problem))


def _bound(where: str, kind: str, value: object, context: Mapping[str, Any]) -> InvalidRequest:
    suffix, words, sign, key = BOUNDS[kind]
    limit = context[key]
    noun = "integer" if isinstance(limit, int) else "decimal"
    shown = int(limit) if float(limit).is_integer() else limit
    message = f"Invalid '{where}': {noun} {words}. Expected a value {sign} {shown}, but got {value} instead."
    return InvalidRequest(message, param=where, code=f"{noun}_{suffix}")


def _length(where: str, kind: str, value: object, context: Mapping[str, Any], thing: str = "string") -> InvalidRequest:
    code, words, noun, key = LENGTHS[kind]
    words = words.replace("string", thing)
    if isinstance(value, dict):
        code, words = "object_above_max_properties", "object has too many properties"
    size = len(value) if isinstance(value, str | list | dict) else 0
    return InvalidRequest(
        f"Invalid '{where}': {words}. Expected {noun} {context[key]}, but got {size}.", param=where, code=code
    )
