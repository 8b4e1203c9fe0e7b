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
MIN_RANGE_S = 60
# Parts of the axis of times.
TICKS = 4

# `%s` is the query of the responses. Bars begin at whole seconds, as the times of a list do, so that a bar counts what its list has: bar n
# begins `n * length / BARS` seconds after `low`, rounded down. The division is that of integers.
COUNT = """
WITH shown AS (%s),
     times AS (SELECT floor(extract(epoch FROM created_at))::bigint AS second, status FROM shown),
     span AS (SELECT min(second) AS low, greatest(max(second) - min(second) + 1, {shortest}) AS length FROM times)
SELECT ((second - low + 1) * {bars} - 1) / length AS bar, count(*), count(*) FILTER (WHERE status = '{failed}'), min(low), min(length)
FROM times, span GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class HistogramBar:
    """Bar with the number of responses from `since` to before `until`, and SVG coordinates; `failed_height` is the failed part."""

    since: datetime
    until: datetime
    count: int
    failed: int
    x: int
    width: int
    height: float
    failed_height: float

    @property
    def query(self) -> str:
        """Return the query of the list of the responses, in UTC: local times stand twice at the end of summer time."""
        return f"since={self.since:%Y-%m-%dT%H:%M:%SZ}&until={self.until:%Y-%m-%dT%H:%M:%SZ}"

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
    low, length = counts[0][3:]
    return [datetime.fromtimestamp(low + length * place / TICKS, UTC) for place in range(TICKS + 1)]


def _bars(counts: Sequence[tuple[Any, ...]]) -> list[HistogramBar]:
    if not counts:
        return []
    low, length = counts[0][3:]
    highest = max(row[1] for row in counts)

    def start_of(position: int) -> datetime:
        return datetime.fromtimestamp(low + position * length // BARS, UTC)

    return [
        HistogramBar(
            start_of(position),
            start_of(position + 1),
            count,
            failed,
            position * BAR,
            BAR - 1,
            round(max(count / highest * HEIGHT, 1.5), 1),
            round(max(failed / highest * HEIGHT, 1.5), 1) if failed else 0,
        )
        for position, count, failed, _, _ in counts
    ]
