"""Responses of a day, for the figures of the overview."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.utils import timezone

from responses_app.models import ApiKey, Response
from responses_app.web.overview.time_range import TimeRange

# Twenty minutes past an hour, so that the first and the last hour have responses at any time of the clock.
RANGE_START = timezone.now().replace(minute=20, second=0, microsecond=0) - timedelta(days=1, hours=1)
DAY = TimeRange.until(RANGE_START + timedelta(days=1), "24h", timedelta(hours=1), 24)


def stored(number: int, **fields: Any) -> Response:
    """Return an unsaved response with figures that depend on the number, as irregular as the digits of a product."""

    def spread(prime: int, end: int) -> int:
        return (number + 1) * prime * prime % 99_991 % end

    created_at = fields.pop("created_at", RANGE_START + timedelta(milliseconds=number * 143_999))
    defaults: dict[str, Any] = {
        "project": "pq"[spread(7901, 2)],
        "model": ("small", "large")[spread(7907, 2)],
        "status": ("completed", "completed", "failed")[spread(7919, 3)],
        "input_tokens": spread(7927, 1000),
        "cached_tokens": spread(7933, 100),
        "output_tokens": spread(7937, 500),
        "time_to_first_token_ms": spread(7951, 4000) or None if spread(7949, 3) else None,
        "generation_ms": spread(7963, 9000) if spread(7949, 2) else None,
        "tools": ["f"] if spread(7993, 2) else [],
        "api_format": ("", "messages")[spread(8011, 2)],
        "ended_at": created_at + timedelta(milliseconds=spread(8009, 90_000)),
    }
    uid = f"resp_{number}"
    return Response(uid=uid, thread=uid, created_at=created_at, **{**defaults, **fields})


def six_hundred(key: ApiKey) -> list[Response]:
    """Return six hundred unsaved responses of a day; those of the project `p` have `key`."""
    rows = [stored(number) for number in range(600)]
    for row in rows:
        row.key = key if row.project == "p" else None
    return rows
