"""Counters of limits over all web processes: an amount is reserved at the start of a response, and settled at the end.

A counter has a window: a day or a month of UTC, or the last 60 s. The latter is counted in buckets of BUCKET_S seconds, so that an
amount counts for 60 to 65 s, and the reservations of any 60 s are at most the limit.
A reservation is never settled if its process dies: the ends of responses with a log settle theirs, rows of `OpenReservation` stand for
the others, and what remains ends with its window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import orjson

from responses_app.models.limits.fields import Amount, CountedLimit
from responses_app.store.db import execute_prepared

BUCKET_S: Final = 5
# The buckets of 60 s, and the one that has begun.
BUCKETS: Final = 60 // BUCKET_S + 1
# Start of the bucket or of the window of now.
_START: Final = f"""CASE unit WHEN 'minute' THEN to_timestamp(floor(extract(epoch FROM clock_timestamp()) / {BUCKET_S}) * {BUCKET_S})
    ELSE date_trunc(unit, clock_timestamp(), 'UTC') END"""
# Buckets of a counter as of now, the newest first: those that have ended since the last change are empty, and old ones are left out.
_RECENT: Final = f"""CASE unit WHEN 'minute' THEN array_fill(0::bigint, ARRAY[passed]) || recent[1:{BUCKETS} - passed] END"""
_PASSED: Final = f"""least(greatest(extract(epoch FROM now.start - locked.start) / {BUCKET_S}, 0), {BUCKETS})::integer"""
# Counters whose window begins more than one window after that of now: the clock was wrong, and has been set back. They begin again,
# as they would refuse everything up to that time.
_KNOWN: Final = """known AS MATERIALIZED (
  SELECT name, CASE WHEN locked.start > now.start + ('1 ' || unit)::interval THEN to_timestamp(0) ELSE locked.start END AS start,
    used, recent
  FROM now JOIN locked USING (name)
)"""
# Reserves all amounts or none. The rows are locked in the order of their names, so that two processes never wait for each other.
RESERVE_SQL: Final = f"""
WITH now AS MATERIALIZED (
  SELECT *, {_START} AS start
  FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[]) AS asked(name, unit, most, minimum, amount)
), locked AS MATERIALIZED (
  SELECT name, start, used, recent FROM responses_app_limitcounter WHERE name = ANY($1::text[]) ORDER BY name FOR UPDATE
), {_KNOWN}, moved AS MATERIALIZED (
  SELECT name, unit, most, minimum, amount, greatest(now.start, locked.start) AS start,
    CASE WHEN locked.start >= now.start THEN locked.used ELSE 0 END AS used, {_PASSED} AS passed, recent
  FROM now JOIN known AS locked USING (name)
), level AS MATERIALIZED (
  SELECT name, unit, most, minimum, amount, start, counted.recent,
    CASE unit WHEN 'minute' THEN (SELECT coalesce(sum(part), 0) FROM unnest(counted.recent) part)::bigint ELSE used END AS used
  FROM moved CROSS JOIN LATERAL (SELECT {_RECENT} AS recent) counted
), reserved AS (
  UPDATE responses_app_limitcounter counter SET start = level.start, used = level.used + least(amount, most - level.used),
    recent = CASE unit WHEN 'minute' THEN coalesce(level.recent[1], 0) + least(amount, most - level.used) || level.recent[2:] END
  FROM level WHERE counter.name = level.name
    AND (SELECT count(*) = cardinality($1::text[]) AND bool_and(least(amount, most - used) >= minimum) FROM level)
  RETURNING counter.name
), kept AS (
  INSERT INTO responses_app_openreservation (worker, differences)
  SELECT $6::uuid, jsonb_agg(jsonb_build_object(
    'name', name, 'unit', unit, 'start', extract(epoch FROM start)::bigint, 'difference', -least(amount, most - used)
  )) FROM level WHERE $6::uuid IS NOT NULL AND name IN (SELECT name FROM reserved) HAVING count(*) > 0
  RETURNING id
)
SELECT name, used, least(amount, most - used), extract(epoch FROM start)::bigint, extract(epoch FROM start - clock_timestamp()
  + CASE unit WHEN 'minute' THEN '{BUCKETS * BUCKET_S} s' ELSE '1 ' || unit END::interval)::float8, coalesce(recent, '{{}}'),
  (SELECT id FROM kept)
FROM level
"""  # noqa: S608 - constants of this module alone
CREATE_SQL: Final = """
INSERT INTO responses_app_limitcounter (name, start, used) SELECT name, 'epoch', 0 FROM unnest($1::text[]) AS name ON CONFLICT DO NOTHING
"""
# Less than was reserved is given back while the window or the bucket lasts. More than was reserved is added to that of now.
SETTLE_SQL: Final = f"""
WITH given AS MATERIALIZED (
  SELECT * FROM json_to_recordset($1::json) AS given(name text, unit text, start bigint, difference bigint)
), locked AS MATERIALIZED (
  SELECT name, start, used, recent FROM responses_app_limitcounter WHERE name = ANY(ARRAY(SELECT name FROM given)) ORDER BY name FOR UPDATE
), now AS MATERIALIZED (
  SELECT name, unit, {_START} AS start, coalesce(sum(difference) FILTER (WHERE difference > 0), 0)::bigint AS more
  FROM given GROUP BY name, unit
), {_KNOWN}, moved AS MATERIALIZED (
  SELECT name, unit, more, locked.start AS old_start, used, greatest(locked.start, now.start) AS start, {_PASSED} AS passed, recent
  FROM known AS locked JOIN now USING (name)
), less AS MATERIALIZED (
  SELECT given.name, given.start, sum(difference)::bigint AS difference FROM given WHERE difference < 0 GROUP BY given.name, given.start
), settled AS MATERIALIZED (
  SELECT name, start,
    ARRAY(
      SELECT greatest(coalesce(counted.recent[place], 0) + coalesce(less.difference, 0), 0) + CASE place WHEN 1 THEN more ELSE 0 END
      FROM generate_series(1, CASE unit WHEN 'minute' THEN {BUCKETS} ELSE 0 END) place
      LEFT JOIN less ON less.name = moved.name AND less.start = extract(epoch FROM moved.start)::bigint - (place - 1) * {BUCKET_S}
      ORDER BY place
    ) AS recent,
    more + greatest(
      CASE WHEN start = old_start THEN used
        + coalesce((SELECT difference FROM less WHERE less.name = moved.name AND to_timestamp(less.start) = old_start), 0) ELSE 0 END,
      0
    ) AS window_used
  FROM moved CROSS JOIN LATERAL (SELECT {_RECENT} AS recent) counted
)
UPDATE responses_app_limitcounter counter SET start = settled.start, recent = settled.recent,
  used = CASE settled.recent WHEN '{{}}' THEN window_used ELSE (SELECT sum(part) FROM unnest(settled.recent) part) END
FROM settled WHERE counter.name = settled.name
"""  # noqa: S608 - constants of this module alone


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
    """State of a limit: what others have used in the window, and what the request gets.

    `end_s` are the seconds until the window ends, or until the newest bucket counts no more. `recent` are the buckets of a minute, the
    newest first. `row` is the key of the `OpenReservation`, if there is one.
    """

    limit: CountedLimit
    used: int
    granted: int
    start: int
    end_s: float
    recent: Sequence[int]
    row: int | None

    @property
    def reset_s(self) -> float:
        """Seconds until the whole limit is available again, if nothing else is reserved."""
        return self.wait_s(self.limit.most) if self.granted <= 0 else self.end_s

    def wait_s(self, needed: int) -> float:
        """Return the seconds until `needed` is available."""
        if self.limit.unit != "minute":
            return self.end_s
        missing = self.used + min(needed, self.limit.most) - self.limit.most
        if missing <= 0:
            return 0.0
        for place in reversed(range(len(self.recent))):
            missing -= self.recent[place]
            if missing <= 0:
                return max(self.end_s - place * BUCKET_S, 0.0)
        return self.end_s

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


def reserve(needs: Sequence[LimitNeed], worker: UUID | None = None) -> list[LimitLevel]:
    """Reserve all needs in one statement, or none if a level grants less than the minimum. Return the levels in the order of `needs`.

    With a `worker`, a row of `OpenReservation` gives the reservation back when this process dies.
    """
    names = [need.limit.counter for need in needs]
    parameters = [
        names,
        [need.limit.unit for need in needs],
        [need.limit.most for need in needs],
        [need.minimum for need in needs],
        [need.amount for need in needs],
        worker,
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
