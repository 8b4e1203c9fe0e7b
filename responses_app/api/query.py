"""Query parameters, read as strictly as the body."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.http import HttpRequest

from responses_app.api.problems import value
from responses_app.api.requests import INCLUDE
from responses_app.errors import Invalid

# int() would take other scripts' digits, underscores and white space, and thousands of digits.
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
BOOLEANS: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def boolean(request: HttpRequest, name: str, default: bool = False) -> bool:
    """A switch. Raises Invalid."""
    given = request.GET.get(name)
    if given is None or given == "":
        return default
    if given.lower() not in BOOLEANS:
        raise Invalid(f"Invalid type for '{name}': expected a boolean, but got '{given}'.", param=name, code="invalid_type")
    return BOOLEANS[given.lower()]


def integer(request: HttpRequest, name: str, default: int, least: int, most: int | None = None) -> int:
    """A whole number within limits. Raises Invalid."""
    given = request.GET.get(name)
    if given is None or given == "":
        return default
    if INTEGER.fullmatch(given) is None:
        message = f"Invalid type for '{name}': expected an integer, but got '{given[:64]}'."
        raise Invalid(message, param=name, code="invalid_type")
    number = int(given)
    if number < least:
        message = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {number} instead."
        raise Invalid(message, param=name, code="integer_below_min_value")
    if most is not None and number > most:
        message = f"Invalid '{name}': integer above maximum value. Expected a value <= {most}, but got {number} instead."
        raise Invalid(message, param=name, code="integer_above_max_value")
    return number


def choice(request: HttpRequest, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """One of `allowed`. Raises Invalid."""
    given = request.GET.get(name) or default
    if given not in allowed:
        raise value(name, given, ", ".join(f"'{one}'" for one in allowed))
    return given


def include(request: HttpRequest) -> list[str]:
    """The values of `include` and `include[]`. Raises Invalid for one that is unknown."""
    values = [*request.GET.getlist("include"), *request.GET.getlist("include[]")]
    for index, one in enumerate(values):
        if one not in INCLUDE:
            raise value(f"include[{index}]", one, ", ".join(f"'{name}'" for name in INCLUDE))
    return values
