"""The tool and the schema of the drivers."""

from __future__ import annotations

from pydantic import BaseModel

# Cities that `get_weather` was asked for.
asked: list[str] = []


class Profile(BaseModel):
    """A person."""

    name: str
    age: int


def get_weather(city: str) -> str:
    """Return the weather of a city.

    Args:
        city: Name of the city.
    """
    asked.append(city)
    return f"{city}: sunny"
