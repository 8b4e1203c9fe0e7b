"""Schemas of the weather tool: the declaration in a request, and a call as an input item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from responses_app.validation.base import CallEnding, StrictModel, validate
from responses_app.validation.errors import Loc


class WeatherTool(StrictModel):
    """Weather of a place, measured by a station."""

    type: Literal["weather"]
    station: Annotated[str, Field(min_length=1, max_length=16)]


class WeatherCallInput(StrictModel):
    """Weather call in the input."""

    type: Literal["weather_call"]
    id: str | None = None
    station: str
    place: str
    degrees: float | None = None
    status: CallEnding | None = None


def parse_weather(raw: Mapping[str, Any], loc: Loc) -> dict[str, Any]:
    """Parse a declared weather tool. Raises InvalidRequest."""
    return validate(WeatherTool, raw, loc).model_dump()
