"""Histogram of responses over time as SVG bars, each with a link to the responses of a time range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import QuerySet

from responses_app.models import Response, Status
from responses_app.store.replica import read_connection

# Only the newest responses are counted, to bound the cost of the query.
MAX_COUNTED = 20_000
# Parts of the width and the height of the drawing: a bar has BAR parts, of which one is the space to the next bar.
BARS, BAR, HEIGHT = 60, 10, 40.0
MIN_RANGE_S = 60.0
# Parts of the axis of times.
TICKS = 4

# `%s` is the query of the responses.
COUNT = """
WITH shown AS (%s),
     span AS (SELECT extract(epoch FROM min(created_at))::float8 AS low, extract(epoch FROM max(created_at))::float8 AS high FROM shown)
SELECT least(floor((extract(epoch FROM created_at)::float8 - low) / greatest(high - low, {shortest}) * {bars})::int, {bars} - 1) AS bar,
       count(*), count(*) FILTER (WHERE status = '{failed}'), min(low), max(high)
FROM shown, span GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """Bar with the number of responses from `since` to `until`, and SVG coordinates; `failed_height` is the failed part."""

    since: datetime
    until: datetime
    count: int
    failed: int
    x: int
    width: int
    height: float
    failed_height: float

    @property
    def y(self) -> float:
        """Return the y coordinate of the bar, from the top."""
        return HEIGHT - self.height


@dataclass(frozen=True, slots=True)
class Histogram:
    """Non-empty bars. `is_partial` means only the newest `MAX_COUNTED` responses are counted.

    `ticks` are the times of the axis, at equal distances from the left end to the right end.
    """

    bars: Sequence[HistogramBar]
    total: int
    is_partial: bool
    ticks: Sequence[datetime] = ()

    @property
    def is_of_days(self) -> bool:
        """Return whether the axis needs dates."""
        return bool(self.ticks) and self.ticks[-1] - self.ticks[0] > timedelta(days=1)

    @property
    def highest(self) -> int:
        """Return the count of the highest bar."""
        return max(bar.count for bar in self.bars)


def histogram(rows: QuerySet[Response]) -> Histogram:
    """Count the newest of the responses over time."""
    shown = rows.order_by("-pk").values("created_at", "status")[:MAX_COUNTED]
    try:
        sql, params = shown.query.sql_with_params()
    except EmptyResultSet:
        # Django raises if the query can match nothing.
        return Histogram([], 0, is_partial=False)
    count_sql = COUNT.format(shortest=MIN_RANGE_S, bars=BARS, failed=Status.FAILED.value) % sql
    with read_connection().cursor() as cursor:
        cursor.execute(count_sql, params)
        counts = cursor.fetchall()
    total = sum(row[1] for row in counts)
    return Histogram(_bars(counts), total, total >= MAX_COUNTED, _ticks(counts))


def _ticks(counts: Sequence[tuple[Any, ...]]) -> list[datetime]:
    if not counts:
        return []
    low, high = counts[0][3], counts[0][4]
    return [datetime.fromtimestamp(low + max(high - low, MIN_RANGE_S) * place / TICKS, UTC) for place in range(TICKS + 1)]


def _bars(counts: Sequence[tuple[Any, ...]]) -> list[HistogramBar]:
    if not counts:
        return []
    low, high = counts[0][3], counts[0][4]
    step, highest = max(high - low, MIN_RANGE_S) / BARS, max(row[1] for row in counts)

    def start_of(position: int) -> datetime:
        return datetime.fromtimestamp(low + position * step, UTC)

    return [
        HistogramBar(
            start_of(position),
            # `until` is exclusive, so the last bar ends one step later to include the newest response.
            start_of(position + 1 if position < BARS - 1 else BARS + 1),
            count,
            failed,
            position * BAR,
            BAR - 1,
            round(max(count / highest * HEIGHT, 1.5), 1),
            round(max(failed / highest * HEIGHT, 1.5), 1) if failed else 0,
        )
        for position, count, failed, _, _ in counts
    ]
