"""Arguments of a tool call, as written by the model."""

from __future__ import annotations

from typing import Any

import orjson


class InvalidArguments(ValueError):
    """Arguments that are no JSON object. The message is for the model."""


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse the JSON object `text`. Raises InvalidArguments."""
    try:
        arguments = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidArguments(f"The arguments are not valid JSON: {error}.") from error
    if not isinstance(arguments, dict):
        raise InvalidArguments("The arguments are not a JSON object.")
    return arguments
