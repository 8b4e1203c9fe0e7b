"""Query parameters, read as strictly as the body: one that is empty or repeated is refused, never overlooked."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.http import HttpRequest

from responses_app.errors import InvalidRequest
from responses_app.schemas.create_response import INCLUDE
from responses_app.schemas.errors import invalid_value, shorten

# int() would take other scripts' digits, underscores and white space, and thousands of digits.
INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
BOOLEANS: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


def single(request: HttpRequest, name: str) -> str | None:
    """Return the value of a parameter, None where it is absent. Raises Invalid for one that is given twice."""
    values = request.GET.getlist(name)
    if len(values) > 1:
        message = f"Invalid '{name}': the query parameter is given {len(values)} times. Give it once."
        raise InvalidRequest(message, param=name, code="invalid_value")
    return values[0] if values else None


def text(request: HttpRequest, name: str) -> str | None:
    """Return the text of a parameter, None where it is absent. Raises Invalid for an empty one."""
    given = single(request, name)
    if given == "":
        message = f"Invalid '{name}': the query parameter is empty. Give it a value or leave it out."
        raise InvalidRequest(message, param=name, code="invalid_value")
    return given


def boolean(request: HttpRequest, name: str, default: bool = False) -> bool:
    """Read a switch. Raises Invalid."""
    given = single(request, name)
    if given is None:
        return default
    if given.lower() not in BOOLEANS:
        raise _wrong_type(name, "a boolean", given)
    return BOOLEANS[given.lower()]


def integer(request: HttpRequest, name: str, default: int, least: int, most: int | None = None) -> int:
    """Read a whole number within limits. Raises Invalid."""
    given = single(request, name)
    if given is None:
        return default
    if INTEGER.fullmatch(given) is None:
        raise _wrong_type(name, "an integer", given)
    number = int(given)
    if number < least:
        message = f"Invalid '{name}': integer below minimum value. Expected a value >= {least}, but got {number} instead."
        raise InvalidRequest(message, param=name, code="integer_below_min_value")
    if most is not None and number > most:
        message = f"Invalid '{name}': integer above maximum value. Expected a value <= {most}, but got {number} instead."
        raise InvalidRequest(message, param=name, code="integer_above_max_value")
    return number


def choice(request: HttpRequest, name: str, default: str, allowed: tuple[str, ...]) -> str:
    """Read one of `allowed`. Raises Invalid."""
    given = single(request, name)
    if given is None:
        return default
    if given not in allowed:
        raise invalid_value(name, given, ", ".join(f"'{one}'" for one in allowed))
    return given


def cursor(request: HttpRequest) -> str | None:
    """Read `after`, the ID behind which a page begins; None is the first page. Raises Invalid, also for `before`."""
    if "before" in request.GET:
        message = "Unsupported parameter: 'before'. Read a list backwards with 'order' and 'after'."
        raise InvalidRequest(message, param="before", code="unsupported_parameter")
    return text(request, "after")


def include(request: HttpRequest) -> list[str]:
    """Read the values of `include` and `include[]`. Raises Invalid for one that is unknown."""
    values = [*request.GET.getlist("include"), *request.GET.getlist("include[]")]
    for index, one in enumerate(values):
        if one not in INCLUDE:
            raise invalid_value(f"include[{index}]", one, ", ".join(f"'{name}'" for name in INCLUDE))
    return values


def _wrong_type(name: str, expected: str, given: str) -> InvalidRequest:
    came = f"'{shorten(given)}'" if given else "an empty value"
    return InvalidRequest(f"Invalid type for '{name}': expected {expected}, but got {came}.", param=name, code="invalid_type")
