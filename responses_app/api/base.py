"""What every model of a request has in common: strict types, and null for what is absent."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict

from responses_app.api.problems import Loc, path, wrong_type

NAME = r"^[a-zA-Z0-9_-]+$"


class Strict(BaseModel):
    """No coercion, no unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")


def given(raw: object, loc: Loc) -> dict[str, Any]:
    """The keys of an object that say something: null stands for absent (responses-api.md §1.1), whatever the key. Raises Invalid."""
    if not isinstance(raw, dict):
        raise wrong_type(path(loc), "an object", raw)
    return {key: value for key, value in raw.items() if value is not None}
