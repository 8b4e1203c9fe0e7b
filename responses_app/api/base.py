"""What every model of a request has in common: strict types, and null for what is absent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from responses_app.api.problems import Loc, path, wrong_type

NAME = r"^[a-zA-Z0-9_-]+$"
TEXT_LIMIT = 10_485_760
IMAGE_URL_LIMIT = 20_971_520
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Status = Literal["in_progress", "completed", "incomplete"]
CallId = Annotated[str, Field(min_length=1, max_length=64)]
LongText = Annotated[str, Field(max_length=TEXT_LIMIT)]


class Strict(BaseModel):
    """No coercion, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _said(cls, raw: object) -> object:
        """Null stands for absent, whatever the key and however deep (checklist 10)."""
        return {key: said for key, said in raw.items() if said is not None} if isinstance(raw, dict) else raw


class Caller(Strict):
    """Who made a call: the model itself, or a program that another server ran."""

    type: Literal["direct", "program"]
    caller_id: str | None = None


def given(raw: object, loc: Loc) -> dict[str, Any]:
    """The keys of an object that say something: null stands for absent (responses-api.md §1.1), whatever the key. Raises Invalid."""
    if not isinstance(raw, dict):
        raise wrong_type(path(loc), "an object", raw)
    return {key: value for key, value in raw.items() if value is not None}
