"""Sampling defaults of a checkpoint, for requests without own values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from responses_app.dialects.schema_limits import NO_LIMITS, SchemaLimits

# The highest values of the keys that are numbers.
_HIGHEST = {"temperature": 100.0, "top_p": 1.0}


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """Sampling defaults from the generation_config.json of a model.

    `max_new_tokens` limits the output in tokens; None leaves the whole context. `schema_limits` are the keys `max_string_length`
    and `max_array_items`, for small models that do not end a string or an array. `json_whitespace` replaces the setting.
    `max_reasoning_length` ends the reasoning, in characters, and `max_repetitions` a text that repeats the same few tokens.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    schema_limits: SchemaLimits = NO_LIMITS
    json_whitespace: str | None = None
    max_repetitions: int | None = None
    max_reasoning_length: int | None = None

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the defaults of the model in a folder. Raises ValueError, which names the file."""
        file = folder / "generation_config.json"
        if not file.is_file():
            return cls()
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise ValueError(f"{file} cannot be read: {error}; correct the file, or remove it") from error
        if problem := _problem(config):
            raise ValueError(f"{file}: {problem}; correct the file, or remove it")
        greedy = config.get("do_sample") is False
        return cls(
            temperature=0.0 if greedy else config.get("temperature") or 1.0,
            top_p=1.0 if greedy else config.get("top_p") or 1.0,
            max_new_tokens=config.get("max_new_tokens"),
            schema_limits=SchemaLimits(config.get("max_string_length"), config.get("max_array_items")),
            json_whitespace=config.get("json_whitespace"),
            max_repetitions=config.get("max_repetitions"),
            max_reasoning_length=config.get("max_reasoning_length"),
        )


def _problem(config: Any) -> str | None:
    """Return why a configuration holds no defaults, or None."""
    if not isinstance(config, dict):
        return "it is no JSON object"
    for key, highest in _HIGHEST.items():
        value = config.get(key)
        if value is not None and (type(value) not in (int, float) or not 0 <= value <= highest):
            return f"{key} is {value!r}, in place of a number from 0 to {highest:g}"
    longest = config.get("max_new_tokens")
    if longest is not None and (type(longest) is not int or longest < 1):
        return f"max_new_tokens is {longest!r}, in place of a number of tokens"
    return None
