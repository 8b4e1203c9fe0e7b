"""Filters of a file search over the attributes of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from responses_app.errors import InvalidRequest
from responses_app.schemas.base import drop_nulls
from responses_app.schemas.errors import Loc, json_path, translate, wrong_type
from responses_app.schemas.server_tools import ComparisonFilter, CompoundFilter

MAX_DEPTH = 8
MAX_COMPARISONS = 256
MAX_VALUE_LENGTH = 512
MAX_VALUES = 256
_LISTS = ("in", "nin")


def parse_filters(raw: object, loc: Loc, depth: int = 1) -> dict[str, Any]:
    """Parse a comparison, or several joined by `and` or `or`, at most `MAX_DEPTH` levels deep. Raises InvalidRequest."""
    raw = drop_nulls(raw, loc)
    if depth > MAX_DEPTH:
        where = json_path(loc)
        raise InvalidRequest(
            f"Invalid '{where}': filters may have {MAX_DEPTH} levels at most.", param=where, code="invalid_value"
        )
    if raw.get("type") in ("and", "or"):
        return _compound(raw, loc, depth)
    try:
        comparison = ComparisonFilter.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, ComparisonFilter.model_fields) from error
    _check_value(comparison.value, comparison.type in _LISTS, (*loc, "value"))
    return comparison.model_dump()


def _compound(raw: Mapping[str, Any], loc: Loc, depth: int) -> dict[str, Any]:
    try:
        found = CompoundFilter.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, CompoundFilter.model_fields) from error
    inside = [parse_filters(one, (*loc, "filters", index), depth + 1) for index, one in enumerate(found.filters)]
    if sum(map(_count, inside)) > MAX_COMPARISONS:
        where = json_path(loc)
        message = f"Invalid '{where}': filters may have {MAX_COMPARISONS} comparisons at most."
        raise InvalidRequest(message, param=where, code="invalid_value")
    return {"type": found.type, "filters": inside}


def _count(filters: Mapping[str, Any]) -> int:
    """Count the comparisons."""
    return sum(map(_count, filters["filters"])) if "filters" in filters else 1


def _check_value(value: object, is_list: bool, loc: Loc) -> None:
    """Check the value of a comparison: a string, a number or a boolean; for `in` and `nin` an array of these."""
    if is_list and not isinstance(value, list):
        raise wrong_type(json_path(loc), "an array", value)
    values = value if is_list and isinstance(value, list) else [value]
    if len(values) > MAX_VALUES:
        where = json_path(loc)
        message = f"Invalid '{where}': array too long. Expected maximum length {MAX_VALUES}, but got {len(values)}."
        raise InvalidRequest(message, param=where, code="array_above_max_length")
    for index, one in enumerate(values):
        path = json_path((*loc, index) if is_list else loc)
        if not isinstance(one, str | int | float):
            raise wrong_type(path, "a string, a number or a boolean", one)
        if isinstance(one, str) and len(one) > MAX_VALUE_LENGTH:
            message = f"Invalid '{path}': string too long. Expected maximum length {MAX_VALUE_LENGTH}, but got {len(one)}."
            raise InvalidRequest(message, param=path, code="string_above_max_length")
