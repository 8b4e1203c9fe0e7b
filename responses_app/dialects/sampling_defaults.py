"""Sampling defaults of a checkpoint, for requests without own values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from responses_app.dialects.schema_limits import NO_LIMITS, SchemaLimits

# The lowest and the highest values of the keys that are numbers. vLLM writes -1 for a `top_k` of all tokens.
_NUMBERS = {
    "temperature": (0.0, 100.0),
    "top_p": (0.0, 1.0),
    "top_k": (-1.0, 2.0**31),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.01, 100.0),
}
# Values of keys that change the output of transformers, and that this server does not apply; other values are a warning.
_WITHOUT_EFFECT: dict[str, tuple[object, ...]] = {
    "bad_words_ids": (None, []),
    "begin_suppress_tokens": (None, []),
    "encoder_repetition_penalty": (None, 1, 1.0),
    "forced_bos_token_id": (None,),
    "forced_eos_token_id": (None,),
    "length_penalty": (None, 1, 1.0),
    "min_new_tokens": (None, 0),
    "no_repeat_ngram_size": (None, 0),
    "num_beams": (None, 1),
    "penalty_alpha": (None, 0, 0.0),
    "presence_penalty": (None, 0, 0.0),
    "frequency_penalty": (None, 0, 0.0),
    "sequence_bias": (None, [], {}),
    "typical_p": (None, 1, 1.0),
}


@dataclass(frozen=True, slots=True)
class SamplingDefaults:
    """Sampling defaults from the generation_config.json of a model.

    `max_new_tokens` limits the output in tokens; None leaves the whole context. `schema_limits` are the keys `max_string_length`
    and `max_array_items`, for small models that do not end a string or an array. `json_whitespace` replaces the setting.
    `max_reasoning_length` ends the reasoning, in characters, and `max_repetitions` a text that repeats the same few tokens.
    `stop_strings` end an answer as the `stop` of a request does, and `suppress_tokens` are never generated. `not_applied` are the
    keys of the file that have no effect here.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    max_new_tokens: int | None = None
    schema_limits: SchemaLimits = NO_LIMITS
    json_whitespace: str | None = None
    max_repetitions: int | None = None
    max_reasoning_length: int | None = None
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stop_strings: tuple[str, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    not_applied: tuple[str, ...] = ()

    @classmethod
    def read(cls, file: Path | None) -> Self:
        """Read the defaults of a generation_config.json, if there is one. Raises ValueError, which names the file."""
        if file is None or not file.is_file():
            return cls()
        try:
            config = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            raise ValueError(f"{file} cannot be read: {error}; correct the file, or remove it") from error
        if problem := _problem(config):
            raise ValueError(f"{file}: {problem}; correct the file, or remove it")
        greedy = config.get("do_sample") is False
        return cls(
            temperature=0.0 if greedy else _number(config, "temperature", 1.0),
            top_p=1.0 if greedy else _number(config, "top_p", 1.0),
            top_k=0 if greedy else max(int(_number(config, "top_k", 0)), 0),
            min_p=0.0 if greedy else _number(config, "min_p", 0.0),
            repetition_penalty=_number(config, "repetition_penalty", 1.0),
            max_new_tokens=config.get("max_new_tokens"),
            schema_limits=SchemaLimits(config.get("max_string_length"), config.get("max_array_items")),
            json_whitespace=config.get("json_whitespace"),
            max_repetitions=config.get("max_repetitions"),
            max_reasoning_length=config.get("max_reasoning_length"),
            stop_strings=tuple(_listed(config, "stop_strings")),
            suppress_tokens=tuple(_listed(config, "suppress_tokens")),
            not_applied=tuple(key for key, values in _WITHOUT_EFFECT.items() if config.get(key) not in values),
        )

    def as_json(self) -> dict[str, object]:
        """Return the object `sampling_defaults` of a model in the API: the numbers, and the other defaults of the file."""
        more = {"max_output_tokens": self.max_new_tokens, "stop": self.stop_strings, "suppress_tokens": self.suppress_tokens}
        return {**{key: getattr(self, key) for key in _NUMBERS}, **{key: value for key, value in more.items() if value}}

    def summary(self) -> str:
        """Return a line with the defaults."""
        return ", ".join(f"{key} {json.dumps(value)}" for key, value in self.as_json().items())

    @property
    def warning(self) -> str | None:
        """Warning for the operator about keys of the file that have no effect, or None."""
        if not self.not_applied:
            return None
        return (
            f"generation_config.json has {', '.join(self.not_applied)}, which this server does not apply: outputs of the model may "
            "differ from those in transformers."
        )


def _number(config: dict[str, Any], key: str, default: float) -> float:
    value = config.get(key)
    return default if value is None else value


def _listed(config: dict[str, Any], key: str) -> list[Any]:
    value = config.get(key)
    return value if isinstance(value, list) else [value] if value not in (None, "") else []


def _problem(config: Any) -> str | None:
    """Return why a configuration holds no defaults, or None."""
    if not isinstance(config, dict):
        return "it is no JSON object"
    for key, (lowest, highest) in _NUMBERS.items():
        value = config.get(key)
        if value is not None and (type(value) not in (int, float) or not lowest <= value <= highest):
            return f"{key} is {value!r}, in place of a number from {lowest:g} to {highest:g}"
    longest = config.get("max_new_tokens")
    if longest is not None and (type(longest) is not int or longest < 1):
        return f"max_new_tokens is {longest!r}, in place of a number of tokens"
    if not all(isinstance(text, str) and text for text in _listed(config, "stop_strings")):
        return f"stop_strings is {config['stop_strings']!r}, in place of a list of texts"
    if not all(type(token) is int and token >= 0 for token in _listed(config, "suppress_tokens")):
        return f"suppress_tokens is {config['suppress_tokens']!r}, in place of a list of ids of tokens"
    return None
