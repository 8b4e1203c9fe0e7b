"""Filters of a file search over the attributes of files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.errors import InvalidRequest
from responses_app.validation.base import StrictModel, drop_nulls, validate
from responses_app.validation.errors import Loc, invalid, json_path, wrong_type

MAX_DEPTH = 8
MAX_COMPARISONS = 256
MAX_VALUE_LENGTH = 512
MAX_VALUES = 256
_LISTS = ("in", "nin")


class ComparisonFilter(StrictModel):
    """Comparison of an attribute of a file with a value."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]
    key: Annotated[str, Field(min_length=1, max_length=64)]
    value: Any


class CompoundFilter(StrictModel):
    """Several filters, all or any of which must match."""

    type: Literal["and", "or"]
    filters: Annotated[list[Any], Field(min_length=1, max_length=64)]


def parse_filters(raw: object, loc: Loc, depth: int = 1) -> dict[str, Any]:
    """Parse a comparison, or several joined by `and` or `or`, at most `MAX_DEPTH` levels deep. Raises InvalidRequest."""
    raw = drop_nulls(raw, loc)
    if depth > MAX_DEPTH:
        raise invalid(loc, f"filters may have {MAX_DEPTH} levels at most.")
    if raw.get("type") in ("and", "or"):
        return _compound(raw, loc, depth)
    comparison = validate(ComparisonFilter, raw, loc)
    _check_value(comparison.value, comparison.type in _LISTS, (*loc, "value"))
    return comparison.model_dump()


def _compound(raw: Mapping[str, Any], loc: Loc, depth: int) -> dict[str, Any]:
    compound = validate(CompoundFilter, raw, loc)
    inside = [parse_filters(one, (*loc, "filters", index), depth + 1) for index, one in enumerate(compound.filters)]
    if sum(map(_count, inside)) > MAX_COMPARISONS:
        raise invalid(loc, f"filters may have {MAX_COMPARISONS} comparisons at most.")
    return {"type": compound.type, "filters": inside}


def _count(filters: Mapping[str, Any]) -> int:
    """Count the comparisons."""
    return sum(map(_count, filters["filters"])) if "filters" in filters else 1


def _check_value(value: object, is_list: bool, loc: Loc) -> None:
    """Check the value of a comparison: a string, a number or a boolean; for `in` and `nin` an array of these."""
    if is_list and not isinstance(value, list):
        raise wrong_type(json_path(loc), "an array", value)
    values = value if is_list and isinstance(value, list) else [value]
    if len(values) > MAX_VALUES:
        raise invalid(
            loc, f"array too long. Expected maximum length {MAX_VALUES}, but got {len(values)}.", "array_above_max_length"
        )
    for index, one in enumerate(values):
        path = json_path((*loc, index) if is_list else loc)
        if not isinstance(one, str | int | float):
            raise wrong_type(path, "a string, a number or a boolean", one)
        if isinstance(one, str) and len(one) > MAX_VALUE_LENGTH:
            message = f"Invalid '{path}': string too long. Expected maximum length {MAX_VALUE_LENGTH}, but got {len(one)}."
            raise InvalidRequest(message, param=path, code="string_above_max_length")
