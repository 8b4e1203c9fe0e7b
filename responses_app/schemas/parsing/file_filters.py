"""Attribute filters of vector stores: comparisons joined by `and` and `or`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictFloat, StrictInt, StrictStr, ValidationError

from responses_app.errors import InvalidRequest
from responses_app.schemas.base import Array, StrictModel, drop_nulls
from responses_app.schemas.errors import Loc, invalid_value, json_path, missing_type, translate, wrong_type

MAX_DEPTH = 8
MAX_COMPARISONS = 128
MAX_KEY_CHARS = 64
_JOINS = ("and", "or")
_COMPARISONS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")
AttributeValue = StrictBool | StrictInt | Annotated[StrictFloat, Field(allow_inf_nan=False)] | StrictStr
AttributeKey = Annotated[str, Field(min_length=1, max_length=MAX_KEY_CHARS)]


class Comparison(StrictModel):
    """Comparison of an attribute with a value."""

    type: Literal["eq", "ne", "gt", "gte", "lt", "lte"]
    key: AttributeKey
    value: AttributeValue


class Membership(StrictModel):
    """Comparison of an attribute with a list of values."""

    type: Literal["in", "nin"]
    key: AttributeKey
    value: Annotated[Array[AttributeValue], Field(max_length=256)]


class Join(StrictModel):
    """Filters joined by `and` or `or`."""

    type: Literal["and", "or"]
    filters: Annotated[Array[Any], Field(min_length=1, max_length=MAX_COMPARISONS)]


def parse_filters(raw: object, loc: Loc = ("filters",)) -> dict[str, Any] | None:
    """Parse a filter; None without a filter. Raises InvalidRequest, also for too many comparisons or levels."""
    if raw is None:
        return None
    counter = [0]
    return _parse(raw, loc, 1, counter)


def _parse(raw: object, loc: Loc, depth: int, counter: list[int]) -> dict[str, Any]:
    values = drop_nulls(raw, loc)
    where, kind = json_path((*loc, "type")), values.get("type")
    if not isinstance(kind, str):
        raise missing_type(where, kind)
    counter[0] += 1
    if depth > MAX_DEPTH or counter[0] > MAX_COMPARISONS:
        limits = f"at most {MAX_COMPARISONS} comparisons in {MAX_DEPTH} levels"
        raise InvalidRequest(f"Invalid '{json_path(loc)}': a filter has {limits}.", param=json_path(loc), code="invalid_value")
    if kind in _JOINS:
        joined = _validate(Join, values, loc)
        inner = [_parse(one, (*loc, "filters", n), depth + 1, counter) for n, one in enumerate(joined["filters"])]
        return {"type": kind, "filters": inner}
    if kind not in _COMPARISONS:
        raise invalid_value(where, kind, ", ".join(f"'{one}'" for one in (*_COMPARISONS, *_JOINS)))
    return _validate(Membership if kind in ("in", "nin") else Comparison, values, loc)


def _validate(model: type[StrictModel], values: dict[str, Any], loc: Loc) -> dict[str, Any]:
    try:
        return model.model_validate(values).model_dump()
    except ValidationError as error:
        value_loc = next((one["loc"] for one in error.errors() if one["loc"][:1] == ("value",)), None)
        if value_loc is not None and "value" in values and model is not Join:
            place = [step for step in value_loc if step == "value" or isinstance(step, int)]
            if model is Comparison or len(place) > 1:
                raise wrong_type(json_path((*loc, *place)), "a string, a number or a boolean", _at(values, place)) from error
        raise translate(error, loc, model.model_fields) from error


def _at(values: Any, place: list[Any]) -> object:
    for step in place:
        values = values[step]
    return values
