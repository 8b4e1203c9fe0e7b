"""Query parameters; empty and repeated parameters are rejected."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from django.http import HttpRequest

from responses_app.errors import InvalidRequest
from responses_app.schemas.create_response import INCLUDE
from responses_app.validation.errors import invalid_value, shorten, unknown_parameter

# int() also accepts digits of other scripts, underscores, white space and thousands of digits.
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
BOOLEANS: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def check_known(request: HttpRequest, known: Collection[str]) -> None:
    """Refuse parameters that are not among `known`. Raises InvalidRequest."""
    for name in request.GET:
        if name not in known:
            raise unknown_parameter(name)


def single(request: HttpRequest, name: str) -> str | None:
    """Return the value of a parameter, or None. Raises InvalidRequest for a repeated parameter."""
    values = request.GET.getlist(name)
    if len(values) > 1:
        message = f"Invalid '{name}': the query parameter is given {len(values)} times. Give it once."
        raise InvalidRequest(message, param=name, code="invalid_value")
    return values[0] if values else None


def text(request: HttpRequest, name: str) -> str | None:
    """Return the text of a parameter, or None. Raises InvalidRequest for an empty parameter."""
    value = single(request, name)
    if value == "":
        message = f"Invalid '{name}': the query parameter is empty. Give it a value or leave it out."
        raise InvalidRequest(message, param=name, code="invalid_value")
    return value


def boolean(request: HttpRequest, name: str, default: bool = False) -> bool:
    """Read a boolean. Raises InvalidRequest."""
    value = single(request, name)
    if value is None:
        return default
    if value.lower() not in BOOLEANS:
        raise _wrong_type(name, "a boolean", value)
    return BOOLEANS[value.lower()]


def integer(request: HttpRequest, name: str, default: int, least: int, most: int | None = None) -> int:
    """Read an integer within limits. Raises InvalidRequest."""
    value = single(request, name)
    if value is None:
        return default
    if INTEGER.fullmatch(value) is None:
        raise _wrong_type(name, "an integer", value)
    number = int(value)
    if number < least:
        message = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {number} instead."
        raise InvalidRequest(message, param=name, code="integer_below_min_value")
    if most is not None and number > most:
        message = f"Invalid '{name}': integer above maximum value. Expected a value <= {most}, but got {number} instead."
        raise InvalidRequest(message, param=name, code="integer_above_max_value")
    return number


def choice(request: HttpRequest, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Read a value from `allowed`. Raises InvalidRequest."""
    value = single(request, name)
    if value is None:
        return default
    if value not in allowed:
        raise invalid_value(name, value, allowed)
    return value


def cursor(request: HttpRequest) -> str | None:
    """Read `after`, the id before the first item of the page, or None. Raises InvalidRequest, also for `before`."""
    if "before" in request.GET:
        message = "Unsupported parameter: 'before'. Read a list backwards with 'order' and 'after'."
        raise InvalidRequest(message, param="before", code="unsupported_parameter")
    return text(request, "after")


def include(request: HttpRequest) -> list[str]:
    """Read the values of `include` and `include[]`. Raises InvalidRequest for an unknown value."""
    values = [*request.GET.getlist("include"), *request.GET.getlist("include[]")]
    for index, one in enumerate(values):
        if one not in INCLUDE:
            raise invalid_value(f"include[{index}]", one, INCLUDE)
    return values


def _wrong_type(name: str, expected: str, value: str) -> InvalidRequest:
    came = f"'{shorten(value)}'" if value else "an empty value"
    return InvalidRequest(f"Invalid type for '{name}': expected {expected}, but got {came}.", param=name, code="invalid_type")
