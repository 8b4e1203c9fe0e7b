"""Base class and shared types of the request schemas: strict types, null as absent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from responses_app.errors import InvalidRequest
from responses_app.schemas.errors import Loc, json_path, wrong_type

NAME = r"^[a-zA-Z0-9_-]+$"
TEXT_LIMIT = 10_485_760
IMAGE_URL_LIMIT = 20_971_520
# Items, parts or tools: more than any context can hold, so that validation time stays bounded.
ARRAY_LIMIT = 65_536
# Tools of one request, including tools in namespaces and in items.
TOOLS_LIMIT = 4096
MAX_METADATA = 16
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Status = Literal["in_progress", "completed", "incomplete"]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT)]
T = TypeVar("T")
# Validation of an array stops at its first error: a million error objects would take gigabytes.
Array: TypeAlias = Annotated[list[T], Field(fail_fast=True)]


class StrictModel(BaseModel):
    """Schema without type coercion and without unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, raw: object) -> object:
        """Drop null values, and all unknown keys but the first, which is enough for an error."""
        if not isinstance(raw, dict):
            return raw
        present = {key: value for key, value in raw.items() if value is not None}
        unknown = [key for key in present if key not in _keys(cls)]
        for key in unknown[1:]:
            del present[key]
        return present


@cache
def _keys(model: type[StrictModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in model.model_fields.items())


class Caller(StrictModel):
    """Origin of a call: the model, or a program that another server ran."""

    type: Literal["direct", "program"]
    caller_id: str | None = None


def drop_nulls(raw: object, loc: Loc) -> dict[str, Any]:
    """Return the object without its null values, which mean absent. Raises InvalidRequest if `raw` is no object."""
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "an object", raw)
    return {key: value for key, value in raw.items() if value is not None}


def check_length(raw: list[Any], loc: Loc) -> list[Any]:
    """Return `raw` if it has at most `ARRAY_LIMIT` elements. Raises InvalidRequest."""
    if len(raw) <= ARRAY_LIMIT:
        return raw
    where = json_path(loc)
    message = f"Invalid '{where}': array too long. Expected an array with maximum length {ARRAY_LIMIT}, but got {len(raw)}."
    raise InvalidRequest(message, param=where, code="array_above_max_length")


def check_tools(count: int, loc: Loc) -> None:
    """Reject more than `TOOLS_LIMIT` tools. Raises InvalidRequest."""
    if count > TOOLS_LIMIT:
        where = json_path(loc)
        message = f"Invalid '{where}': too many tools. Expected at most {TOOLS_LIMIT} tools in all, but got {count}."
        raise InvalidRequest(message, param=where, code="array_above_max_length")


def count_tools(raw: object) -> int:
    """Count the tools in an array, including the tools of namespaces."""
    if not isinstance(raw, list):
        return 0
    return len(raw) + sum(count_tools(one.get("tools")) for one in raw if isinstance(one, dict))


def parse_metadata(raw: object) -> Mapping[str, str]:
    """Validate `metadata`: at most 16 pairs of short strings. Raises InvalidRequest."""
    if raw is not None and not isinstance(raw, dict):
        raise wrong_type("metadata", "an object", raw)
    pairs: dict[str, Any] = raw or {}
    if len(pairs) > MAX_METADATA:
        message = (
            f"Invalid 'metadata': object has too many properties. Expected maximum length {MAX_METADATA}, but got {len(pairs)}."
        )
        raise InvalidRequest(message, param="metadata", code="object_above_max_properties")
    for name, given in pairs.items():
        where = f"metadata.{name}"
        if not isinstance(given, str):
            raise wrong_type(where, "a string", given)
        if len(name) > 64:
            message = f"Invalid 'metadata': key too long. Expected maximum length 64, but got {len(name)}."
            raise InvalidRequest(message, param="metadata", code="string_above_max_length")
        if len(given) > 512:
            message = f"Invalid '{where}': string too long. Expected maximum length 512, but got {len(given)}."
            raise InvalidRequest(message, param=where, code="string_above_max_length")
    return pairs
