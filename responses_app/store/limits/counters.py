"""Counters of limits over all web processes: an amount is reserved at the start of a response, and settled at the end.

A counter has a window: a minute, a day or a month of UTC. A reservation that is never settled ends with its window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from responses_app.models.limits.fields import Amount, CountedLimit
from responses_app.store.db import execute_prepared

# Reserves all amounts or none. The rows are locked in the order of their names, so that two processes never wait for each other.
RESERVE_SQL: Final = """
WITH asked AS MATERIALIZED (
  SELECT *, date_trunc(unit, clock_timestamp(), 'UTC') AS start
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS asked(name, unit, most, minimum, amount)
), locked AS MATERIALIZED (
  SELECT name, start, used FROM responses_app_limitcounter WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE
), level AS MATERIALIZED (
  SELECT name, unit, most, minimum, amount, greatest(asked.start, locked.start) AS start,
    CASE WHEN locked.start >= asked.start THEN locked.used ELSE 0 END AS used
  FROM asked JOIN locked USING (name)
), reserved AS (
  UPDATE responses_app_limitcounter counter SET start = level.start, used = level.used + least(amount, most - level.used)
  FROM level WHERE counter.name = level.name
    AND (SELECT count(*) = cardinality($1::text[]) AND bool_and(least(amount, most - used) >= minimum) FROM level)
)
SELECT name, used, least(amount, most - used), extract(epoch FROM start)::bigint,
  extract(epoch FROM start + ('1 ' || unit)::interval - clock_timestamp())::float8 FROM level
"""
CREATE_SQL: Final = """
INSERT INTO responses_app_limitcounter (name, start, used) SELECT name, 'epoch', 0 FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING
"""
# Less than was reserved is given back while the window lasts. More than was reserved is added to the window of now.
SETTLE_SQL: Final = """
WITH given AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::json) AS given(name text, unit text, start bigint, difference bigint)
), locked AS MATERIALIZED (
  SELECT name, start, used FROM responses_app_limitcounter WHERE name = ANY(ARRAY(SELECT name FROM given)) ORDER BY name FOR UPDATE
), settled AS MATERIALIZED (
  SELECT name, locked.start AS old_start, locked.used, greatest(locked.start, date_trunc(unit, clock_timestamp(), 'UTC')) AS start,
    coalesce(sum(difference) FILTER (WHERE difference < 0 AND to_timestamp(given.start) = locked.start), 0) AS less,
    coalesce(sum(difference) FILTER (WHERE difference > 0), 0) AS more
  FROM locked JOIN given USING (name) GROUP BY name, unit, locked.start, locked.used
)
UPDATE responses_app_limitcounter counter
SET start = settled.start,
  used = greatest(CASE WHEN settled.start = old_start THEN settled.used + less ELSE 0 END, 0) + more
FROM settled WHERE counter.name = settled.name
"""


@dataclass(frozen=True, slots=True)
class LimitCharge:
    """Amount that a response has reserved in the counter `name`, in the window that began at `start` (Unix time)."""

    name: str
    unit: str
    amount: str
    start: int
    reserved: int


@dataclass(frozen=True, slots=True)
class LimitLevel:
    """State of a limit: what others have used in the window, what the request gets, and the seconds until the window ends."""

    limit: CountedLimit
    used: int
    granted: int
    start: int
    reset_s: float

    @property
    def remaining(self) -> int:
        """Amount that is left when the request has got the part."""
        return max(self.limit.most - self.used - self.granted, 0)

    @property
    def charge(self) -> LimitCharge:
        """The reservation of the request."""
        return LimitCharge(self.limit.counter, self.limit.unit, self.limit.amount, self.start, self.granted)


@dataclass(frozen=True, slots=True)
class LimitNeed:
    """LimitNeed of a request for a limited amount: `amount`, or what is left of it if that is at least `minimum`."""

    limit: CountedLimit
    amount: int
    minimum: int


def reserve(needs: Sequence[LimitNeed]) -> list[LimitLevel]:
    """Reserve all needs in one statement, or none if a level grants less than the minimum. Return the levels in the order of `needs`."""
    names = [need.limit.counter for need in needs]
    parameters = [
        names,
        [need.limit.unit for need in needs],
        [need.limit.most for need in needs],
        [need.minimum for need in needs],
        [need.amount for need in needs],
    ]
    rows = execute_prepared(RESERVE_SQL, parameters)
    if len(rows) < len(needs):
        execute_prepared(CREATE_SQL, [names])
        rows = execute_prepared(RESERVE_SQL, parameters)
    levels = {name: columns for name, *columns in rows}
    return [LimitLevel(need.limit, *levels[need.limit.counter]) for need in needs]


def settle(differences: bytes) -> None:
    """Settle reservations by the JSON that `dump_differences` returned."""
    execute_prepared(SETTLE_SQL, [differences.decode()])


def dump_differences(charges: Iterable[tuple[LimitCharge, Mapping[str, int]]]) -> bytes:
    """Return the parameter of SETTLE_SQL: the difference between what was used, by the name of the amount, and what was reserved."""
    rows: list[dict[str, Any]] = [
        {"name": charge.name, "unit": charge.unit, "start": charge.start, "difference": used[charge.amount] - charge.reserved}
        for charge, used in charges
    ]
    return orjson.dumps(rows)


def used_amounts(tokens: int = 0, calls: int = 0, spend: int = 0) -> dict[str, int]:
    """Return used amounts by name."""
    return {Amount.TOKENS: tokens, Amount.CALLS: calls, Amount.SPEND: spend}
