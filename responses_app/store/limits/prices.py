"""Prices of tokens, by model (RESPONSES_PRICES)."""

from __future__ import annotations

from django.conf import settings


def cost(model: str, input_tokens: int, cached_tokens: int, output_tokens: int) -> int:
    """Return the cost in billionths of the currency unit; 0 for a model without prices. `cached_tokens` are part of `input_tokens`."""
    price = settings.RESPONSES_PRICES.get(model) or settings.RESPONSES_PRICES.get("")
    if price is None:
        return 0
    # A price for a million tokens in the unit is a thousandth of that in billionths of the unit for a token.
    uncached = input_tokens - cached_tokens
    return round((uncached * price.input + cached_tokens * price.cached_input + output_tokens * price.output) * 1000)
