"""Base class and shared types of the request schemas: strict types, null as absent."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from responses_app.validation.errors import Loc, Missing, invalid, json_path, translate, wrong_type

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
# Name of an earlier call, which the model may have invented.
CalledName = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[\w.\-:]+$")]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT)]
FileId = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00]+$")]
NUL_REFUSED: Final = "the text has the character NUL (U+0000), which cannot be stored."


def check_nul(text: str) -> str:
    """Return `text`. Raises ValueError if it has NUL, which Postgres cannot store."""
    if "\0" in text:
        raise ValueError(NUL_REFUSED)
    return text


# Text of a column of the database.
StoredText = Annotated[str, AfterValidator(check_nul)]
T = TypeVar("T")
Model = TypeVar("Model", bound="StrictModel")
# Validation of an array stops at its first error: a million error objects would take gigabytes.
Array: TypeAlias = Annotated[list[T], Field(fail_fast=True)]


Objects = Array[dict[str, Any]]
# Statuses of calls that another server ran, in the input.
CallEnding = Literal["in_progress", "searching", "interpreting", "generating", "calling", "completed", "incomplete", "failed"]
# `allowed_callers` of a tool: only direct calls by the model exist here; other callers are rejected.
Direct = Annotated[Array[Literal["direct"]], Field(default_factory=list)]


class StrictModel(BaseModel):
    """Schema without type coercion and without unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")
    # Names that other APIs have for a field, which an error about the unknown name mentions.
    other_names: ClassVar[Mapping[str, str]] = {}

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


def validate(model: type[Model], raw: object, loc: Loc = ()) -> Model:
    """Validate `raw` against `model`. Raises InvalidRequest for the first error, with the JSON path below `loc`."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise translate(error, loc, model.model_fields, model.other_names) from error


class Caller(StrictModel):
    """Origin of a call: the model, or a program that another server ran."""

    type: Literal["direct", "program"]
    caller_id: str | None = Field(None, validate_default=True)

    @field_validator("caller_id")
    @classmethod
    def _check_program(cls, uid: str | None, info: ValidationInfo) -> str | None:
        """Require the id of a program: without it the types of the `openai` package cannot read the stored item."""
        if uid is None and info.data.get("type") == "program":
            raise Missing
        return uid


def drop_nulls(raw: object, loc: Loc) -> dict[str, Any]:
    """Return the object without its null values, which mean absent. Raises InvalidRequest if `raw` is no object."""
    if not isinstance(raw, dict):
        raise wrong_type(json_path(loc), "an object", raw)
    return {key: value for key, value in raw.items() if value is not None}


def check_length(raw: list[Any], loc: Loc) -> list[Any]:
    """Return `raw` if it has at most `ARRAY_LIMIT` elements. Raises InvalidRequest."""
    if len(raw) <= ARRAY_LIMIT:
        return raw
    problem = f"array too long. Expected an array with maximum length {ARRAY_LIMIT}, but got {len(raw)}."
    raise invalid(loc, problem, "array_above_max_length")


def check_tools(count: int, loc: Loc) -> None:
    """Reject more than `TOOLS_LIMIT` tools. Raises InvalidRequest."""
    if count > TOOLS_LIMIT:
        problem = f"too many tools. Expected at most {TOOLS_LIMIT} tools in all, but got {count}."
        raise invalid(loc, problem, "array_above_max_length")


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
        problem = f"object has too many properties. Expected maximum length {MAX_METADATA}, but got {len(pairs)}."
        raise invalid(("metadata",), problem, "object_above_max_properties")
    for name, text in pairs.items():
        if not isinstance(text, str):
            raise wrong_type(json_path(("metadata", name)), "a string", text)
        if len(name) > 64:
            problem = f"key too long. Expected maximum length 64, but got {len(name)}."
            raise invalid(("metadata",), problem, "string_above_max_length")
        if len(text) > 512:
            problem = f"string too long. Expected maximum length 512, but got {len(text)}."
            raise invalid(("metadata", name), problem, "string_above_max_length")
    return pairs
