"""Limits and prices by model: values for all models, and for single models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from project.env import MAX_NUMBER
from responses_app.utils.json_setting import load_json, unknown_key_problem

# Key of the number that holds for all other models.
ALL = ""

PRICE_KEYS = ("input", "cached_input", "output")
MAX_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a million tokens of a model, in units of the currency."""

    input: float
    cached_input: float
    output: float


def parse_prices(name: str, text: str) -> Mapping[str, Price]:
    """Parse a table of prices: JSON, or the JSON file that `text` names. Raises ImproperlyConfigured."""
    if not text:
        return {}
    table = load_json(name, text, "JSON or the path of a JSON file")
    if not isinstance(table, dict):
        raise ImproperlyConfigured(f"{name} must be a JSON object of models")
    prices = {}
    for model, entry in table.items():
        problem = _price_problem(entry)
        if problem is not None:
            raise ImproperlyConfigured(f"{name}: {model!r}: {problem}")
        prices[model] = Price(entry["input"], entry.get("cached_input", entry["input"]), entry["output"])
    return prices


def _price_problem(entry: Any) -> str | None:
    """Return the problem with the prices of a model, or None."""
    if not isinstance(entry, dict):
        return 'must be an object, such as {"input": 0.5, "cached_input": 0.1, "output": 1.5}'
    for key in ("input", "output"):
        if key not in entry:
            return f"{key!r} is missing: the price of a million tokens"
    for key, price in entry.items():
        if key in PRICE_KEYS and (isinstance(price, bool) or not isinstance(price, int | float) or not 0 <= price <= MAX_PRICE):
            return f"{key!r} must be a number from 0 to {MAX_PRICE}"
    return unknown_key_problem(entry, PRICE_KEYS)


def parse_limits(name: str, text: str, minimum: int) -> Mapping[str, int]:
    """Parse a setting like `4096 big=8192` to numbers by model; 0 means no limit. Raises ImproperlyConfigured."""
    limits: dict[str, int] = {}
    for entry in text.split():
        model, _, number = entry.rpartition("=")
        if not number.isascii() or not number.isdigit() or 0 < int(number) < minimum:
            raise ImproperlyConfigured(
                f"{name}: {entry!r} must be a whole number of at least {minimum} or 0 for no limit, alone or as model={minimum}"
            )
        if int(number) > MAX_NUMBER:
            raise ImproperlyConfigured(f"{name}: {entry!r} must be at most {MAX_NUMBER}, or 0 for no limit")
        if model in limits:
            raise ImproperlyConfigured(f"{name}: {'the number for all models' if model == ALL else model!r} stands twice")
        limits[model] = int(number)
    return limits
