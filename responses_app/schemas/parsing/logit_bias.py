"""Field `logit_bias`: numbers that are added to the logits of tokens, as in Chat Completions."""

from __future__ import annotations

from collections.abc import Mapping

from responses_app.validation.errors import invalid, wrong_type

MAX_TOKENS = 1024
MAX_BIAS = 100
# Longest text of a token id: more digits than any vocabulary needs.
MAX_DIGITS = 9
_FIELD = "logit_bias"


def parse_logit_bias(raw: object) -> Mapping[str, float]:
    """Parse an object of numbers by token id. Raises InvalidRequest; whether the model has a token is known only later."""
    if raw is None:
        return {}
    if not isinstance(raw, dict):
        raise wrong_type(_FIELD, "an object", raw)
    if len(raw) > MAX_TOKENS:
        problem = f"object has too many properties. Expected at most {MAX_TOKENS}, but got {len(raw)}."
        raise invalid((_FIELD,), problem, "object_above_max_properties")
    return {str(_token(key)): _bias(key, value) for key, value in raw.items()}


def _token(key: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) <= MAX_DIGITS):
        raise invalid((_FIELD,), f"the key '{key[:64]}' is no token id. Keys are the numbers of tokens.")
    return int(key)


def _bias(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(f"{_FIELD}.{key}", "a number", value)
    if not -MAX_BIAS <= value <= MAX_BIAS:
        problem = f"Expected a value from -{MAX_BIAS} to {MAX_BIAS}, but got {value} instead."
        raise invalid((_FIELD, key), problem, "decimal_above_max_value" if value > 0 else "decimal_below_min_value")
    return float(value)
