"""Headers that show limits of a key, by the names of Anthropic's API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

AMOUNTS: Final = ("requests", "tokens")


def rate_limit_headers(headers: Mapping[str, str], now: datetime) -> dict[str, str]:
    """Return the limits in `headers`, which have OpenAI's names. A reset is a time there and not a number of seconds."""
    made: dict[str, str] = {}
    for amount in AMOUNTS:
        if (limit := headers.get(f"x-ratelimit-limit-{amount}")) is None:
            continue
        reset = now + timedelta(seconds=float(headers[f"x-ratelimit-reset-{amount}"].removesuffix("s")))
        made |= {
            f"anthropic-ratelimit-{amount}-limit": limit,
            f"anthropic-ratelimit-{amount}-remaining": headers[f"x-ratelimit-remaining-{amount}"],
            f"anthropic-ratelimit-{amount}-reset": f"{reset:%Y-%m-%dT%H:%M:%SZ}",
        }
    return made
