"""Fields of a request that have one of several types: `stop` and `conversation`."""

from __future__ import annotations

from typing import Any

from responses_app.validation.errors import Loc, invalid, json_path, missing, unknown_parameter, wrong_type

MAX_STOPS = 16
MAX_STOP_LENGTH = 1024


def parse_stops(raw: object) -> list[str]:
    """Parse `stop`: a stop sequence or a list of stop sequences, as in Chat Completions. Raises InvalidRequest."""
    if raw is None:
        return []
    stops: list[Any] = raw if isinstance(raw, list) else [raw]
    if len(stops) > MAX_STOPS:
        problem = f"array too long. Expected an array with maximum length {MAX_STOPS}, but got {len(stops)}."
        raise invalid(("stop",), problem, "array_above_max_length")
    for index, one in enumerate(stops):
        loc: Loc = ("stop", index) if isinstance(raw, list) else ("stop",)
        if not isinstance(one, str):
            raise wrong_type(json_path(loc), "a string" if isinstance(raw, list) else "a string or an array", one)
        if not 0 < len(one) <= MAX_STOP_LENGTH:
            raise invalid(loc, f"a stop sequence has 1 to {MAX_STOP_LENGTH} characters.")
    return stops


def parse_conversation(raw: object) -> str | None:
    """Parse `conversation`: an id, or an object with an id. Raises InvalidRequest."""
    loc, expected = ["conversation"], "a string or an object"
    if isinstance(raw, dict):
        for name, value in raw.items():
            if name != "id" and value is not None:
                raise unknown_parameter(json_path((*loc, name)))
        loc, expected = ["conversation", "id"], "a string"
        raw = raw.get("id")
        if raw is None:
            raise missing(loc)
    if raw is None:
        return None
    if not isinstance(raw, str):
        raise wrong_type(json_path(loc), expected, raw)
    if not raw.startswith("conv"):
        raise invalid(loc, f"'{raw[:64]}'. Expected an ID that begins with 'conv'.")
    return raw
