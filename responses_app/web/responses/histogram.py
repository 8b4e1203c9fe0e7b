"""How many responses over time: bars whose places the server computes, each a link to the list of its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connection
from django.db.models import QuerySet

from responses_app.models import Response, Status

# Of so many of the newest: counting all of them would read them all.
NEWEST = 20_000
BARS, WIDTH, HEIGHT = 60, 600.0, 40.0
SHORTEST_S = 60.0

# `%s` is the list of responses.
COUNT = """
WITH shown AS (%s),
     span AS (SELECT extract(epoch FROM min(created_at))::float8 AS low, extract(epoch FROM max(created_at))::float8 AS high FROM shown)
SELECT least(floor((extract(epoch FROM created_at)::float8 - low) / greatest(high - low, {shortest}) * {bars})::int, {bars} - 1) AS bar,
       count(*), count(*) FILTER (WHERE status = '{failed}'), min(low), max(high)
FROM shown, span GROUP BY 1 ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: what it counts, from when to when, and its place in the picture."""

    since: datetime
    until: datetime
    count: int
    failed: int
    x: float
    width: float
    height: float
    bad: float

    @property
    def y(self) -> float:
        """Where it begins, from above."""
        return HEIGHT - self.height

    @property
    def bad_y(self) -> float:
        """Where the part of it that failed begins."""
        return HEIGHT - self.bad


@dataclass(frozen=True, slots=True)
class Histogram:
    """The bars that are not empty. `partly` says that there are more responses than were counted."""

    bars: Sequence[Bar]
    total: int
    partly: bool

    @property
    def highest(self) -> int:
        """What the highest bar counts."""
        return max(bar.count for bar in self.bars)


def histogram(rows: QuerySet[Response]) -> Histogram:
    """The newest of these responses over time."""
    shown = rows.order_by("-pk").values("created_at", "status")[:NEWEST]
    try:
        sql, params = shown.query.sql_with_params()
    except EmptyResultSet:
        # Django knows already that nothing matches.
        return Histogram([], 0, partly=False)
    counted = COUNT.format(shortest=SHORTEST_S, bars=BARS, failed=Status.FAILED.value) % sql
    with connection.cursor() as cursor:
        cursor.execute(counted, params)
        found = cursor.fetchall()
    total = sum(row[1] for row in found)
    return Histogram(_bars(found), total, total >= NEWEST)


def _bars(found: Sequence[tuple[Any, ...]]) -> list[Bar]:
    if not found:
        return []
    low, high = found[0][3], found[0][4]
    step, highest = max(high - low, SHORTEST_S) / BARS, max(row[1] for row in found)

    def at(place: int) -> datetime:
        return datetime.fromtimestamp(low + place * step, UTC)

    return [
        Bar(
            at(place),
            # The newest response is in the last bar, not behind it.
            at(place + 1 if place < BARS - 1 else BARS + 1),
            count,
            failed,
            round(place * WIDTH / BARS, 1),
            round(WIDTH / BARS - 1, 1),
            round(max(count / highest * HEIGHT, 1.5), 1),
            round(max(failed / highest * HEIGHT, 1.5), 1) if failed else 0,
        )
        for place, count, failed, _, _ in found
    ]
