"""What every model of a request has in common: strict types, and null for what is absent."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from responses_app.errors import InvalidRequest
from responses_app.schemas.errors import Loc, json_path, wrong_type

NAME = r"^[a-zA-Z0-9_-]+$"
TEXT_LIMIT = 10_485_760
IMAGE_URL_LIMIT = 20_971_520
# More items, parts or tools than any context has room for: every one takes its time before that is known.
ARRAY_LIMIT = 65_536
# Of one request, those in namespaces and in items included.
TOOLS_LIMIT = 4096
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Status = Literal["in_progress", "completed", "incomplete"]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT)]
T = TypeVar("T")
# Of a million wrong elements one is enough: each finding is an object, and all together once were gigabytes.
Array: TypeAlias = Annotated[list[T], Field(fail_fast=True)]


class StrictModel(BaseModel):
    """No coercion, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _said(cls, raw: object) -> object:
        """Null stands for absent, whatever the key and however deep (checklist 10). Of unknown keys one is enough."""
        if not isinstance(raw, dict):
            return raw
        told = {key: said for key, said in raw.items() if said is not None}
        strange = [key for key in told if key not in _keys(cls)]
        for key in strange[1:]:
            del told[key]
        return told


@cache
def _keys(model: type[StrictModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())


class Caller(StrictModel):
    """Who made a call: the model itself, or a program that another server ran."""

    type: Literal["direct", "program"]
    caller_id: str | None = None


def drop_nulls(raw: object, loc: Loc) -> dict[str, Any]:
    """The keys of an object that say something: null stands for absent (responses-api.md §1.1), whatever the key. Raises Invalid."""
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "an object", raw)
    return {key: value for key, value in raw.items() if value is not None}


def check_length(raw: list[Any], loc: Loc) -> list[Any]:
    """The array, if it is not longer than any that makes sense. Raises Invalid."""
    if len(raw) <= ARRAY_LIMIT:
        return raw
    where = json_path(loc)
    message = f"Invalid '{where}': array too long. Expected an array with maximum length {ARRAY_LIMIT}, but got {len(raw)}."
    raise InvalidRequest(message, param=where, code="array_above_max_length")


def check_tools(count: int, loc: Loc) -> None:
    """See that these are not too many tools. Raises Invalid."""
    if count > TOOLS_LIMIT:
        where = json_path(loc)
        message = f"Invalid '{where}': too many tools. Expected at most {TOOLS_LIMIT} tools in all, but got {count}."
        raise InvalidRequest(message, param=where, code="array_above_max_length")


def count_tools(raw: object) -> int:
    """The number of tools in an array, those of namespaces included."""
    if not isinstance(raw, list):
        return 0
    return len(raw) + sum(count_tools(one.get("tools")) for one in raw if isinstance(one, dict))
