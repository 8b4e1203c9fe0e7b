"""Figures of the responses of a time range, in total and by time, model, key, project and API format, with bounded cost.

Parts of the range are kept in memory. A part is counted again if other rows are stored than before, which a query that reads no more
than the version of each row finds: every change of a row gives it another `xmin`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, TypeAlias

from django.core.exceptions import EmptyResultSet
from django.db import transaction
from django.db.models import BigIntegerField, F, FloatField, Func, Q, QuerySet

from responses_app.models import RefusedRequest, Response, Status
from responses_app.store.replica import read_connection
from responses_app.web.overview.part_cache import PartCache
from responses_app.web.overview.percentiles import STEPS, Distribution
from responses_app.web.overview.time_range import TimeRange, newest_rows
from responses_app.web.responses.rows import MIN_RATE_TIME_S

# Only the newest responses are counted, to bound the cost of the query.
MAX_COUNTED = 100_000
MAX_REFUSED = 100_000
COLUMNS = (
    "created_at",
    "ended_at",
    "project",
    "model",
    "key_id",
    "status",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "time_to_first_token_ms",
    "generation_ms",
    "tools",
    "api_format",
)
# In the query of the responses, whose offset keeps Postgres from computing it again for each use.
TOTAL_MS = Func(
    F("ended_at"),
    F("created_at"),
    arg_joiner=" - ",
    template="date_part('epoch', %(expressions)s) * 1000",
    output_field=FloatField(),
)
# Number of the transaction that wrote a row, less a constant: `age` is faster than the only cast, by way of text. The rows of a part
# have their count and the sum of these numbers as a signature: whatever is deleted, changed or added, as many rows have a higher sum
# than before.
XMIN = Func(template="age('3'::xid)::bigint - age(\"responses_app_response\".xmin)", output_field=BigIntegerField())
# `{shown}` is the query of the responses. The codes of each group are one value of 2 bytes each, because 100,000 values of their own
# would take longer to fetch than to count. Milliseconds, and tokens per 1,000 s. The generation time is that of `ResponseStats`.
FIGURES = """
WITH shown AS (SELECT * FROM ({shown} OFFSET 0) AS responses,
  LATERAL (SELECT coalesce(generation_ms, CASE WHEN tools = '{{}}' THEN total_ms - time_to_first_token_ms END) AS rate_ms) AS part)
SELECT width_bucket(created_at, %s::timestamptz[]) - 1, model, key_id, project, api_format, sum(xmin)::bigint,
  count(*), count(*) FILTER (WHERE status = '{failed}'), sum(input_tokens), sum(cached_tokens), sum(output_tokens),
  string_agg(int2send(round({steps} * ln(greatest(time_to_first_token_ms, 1)::float8))::int2), '')
    FILTER (WHERE time_to_first_token_ms IS NOT NULL),
  string_agg(int2send(round({steps} * ln(1e6::float8 * output_tokens / rate_ms))::int2), '')
    FILTER (WHERE rate_ms >= {shortest} AND output_tokens > 0),
  string_agg(int2send(round({steps} * ln(greatest(total_ms, 1)))::int2), '') FILTER (WHERE ended_at IS NOT NULL)
FROM shown GROUP BY 1, 2, 3, 4, 5
"""
# The signature and the first row of each part.
SIGNATURES = """
WITH shown AS ({shown})
SELECT width_bucket(created_at, %s::timestamptz[]) - 1, min(id), count(*), sum(xmin)::bigint FROM shown GROUP BY 1
"""
# `{shown}` is the query of the refused requests: rows, and the requests of each part of the time range and key.
REFUSALS = """
WITH shown AS ({shown})
SELECT width_bucket(created_at, %s::timestamptz[]) - 1, key_id, count(*), sum(count)::bigint FROM shown GROUP BY 1, 2
"""
MAX_CACHE_BYTES: Final = 24 << 20
MAX_CELL_CACHE_BYTES: Final = 8 << 20
# Estimates of the memory of a row of the query without its codes, and of figures with their distributions.
ROW_BYTES, FIGURES_BYTES = 600, 50_000
# Model, key, project and API format.
Cell: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ResponseFigures:
    """Figures of responses: counts, sums of tokens, and distributions (milliseconds, and tokens per 1,000 s)."""

    requests: int = 0
    failed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    first: Distribution = field(default_factory=Distribution)
    rate: Distribution = field(default_factory=Distribution)
    total: Distribution = field(default_factory=Distribution)

    @classmethod
    def of_rows(cls, rows: Sequence[tuple[Any, ...]]) -> ResponseFigures:
        """Add rows of the query, each from `count(*)` on."""
        *sums, first, rate, total = zip(*rows, strict=True)
        codes = (Distribution.of_codes(filter(None, column)) for column in (first, rate, total))
        return cls(*(sum(filter(None, column)) for column in sums), *codes)

    @classmethod
    def merged(cls, parts: Sequence[ResponseFigures]) -> ResponseFigures:
        """Add figures."""
        if len(parts) == 1:
            return parts[0]
        sums = ("requests", "failed", "input_tokens", "cached_tokens", "output_tokens")
        return cls(
            *(sum(getattr(part, name) for part in parts) for name in sums),
            *(Distribution.merged(getattr(part, name) for part in parts) for name in ("first", "rate", "total")),
        )


@dataclass(frozen=True, slots=True)
class CountedPart:
    """Counted part of a time range: the rows of the query and their sum. Its version is its key with the signature of its responses."""

    rows: Sequence[tuple[Any, ...]]
    figures: ResponseFigures
    version: tuple[Any, ...]

    @classmethod
    def of_rows(cls, key: tuple[Any, ...], rows: Sequence[tuple[Any, ...]]) -> CountedPart:
        """Add the rows of the query."""
        figures = ResponseFigures.of_rows([row[6:] for row in rows])
        return cls(rows, figures, (*key, figures.requests, sum(row[5] for row in rows)))

    @property
    def size(self) -> int:
        """Memory in bytes, estimated."""
        return FIGURES_BYTES + sum(ROW_BYTES + sum(len(codes or b"") for codes in row[-3:]) for row in self.rows)


@dataclass(frozen=True, slots=True)
class Overview:
    """Figures in total, and by time (each slot), model, key (primary key or None), project and API format, the most requests first."""

    total: ResponseFigures
    slots: Sequence[ResponseFigures]
    models: Mapping[str, ResponseFigures]
    keys: Mapping[int | None, ResponseFigures]
    projects: Mapping[str, ResponseFigures]
    api_formats: Mapping[str, ResponseFigures]

    @property
    def is_partial(self) -> bool:
        """Return whether older responses of the time range were left out."""
        return self.total.requests >= MAX_COUNTED


@dataclass(frozen=True, slots=True)
class Refusals:
    """Numbers of refused requests by time (each slot) and by key. `is_partial` means that older ones were left out."""

    slots: Sequence[int]
    keys: Mapping[int, int]
    is_partial: bool

    @property
    def total(self) -> int:
        """Number of all that were counted."""
        return sum(self.slots)


def count_refused(rows: QuerySet[RefusedRequest], time_range: TimeRange) -> Refusals:
    """Count the requests in the newest `MAX_REFUSED` rows of refused requests, which must be of the time range."""
    slots, keys, number_of_rows = [0] * time_range.slots, defaultdict[int, int](int), 0
    newest = rows.select_related(None).order_by("-pk").values("created_at", "key_id", "count")[:MAX_REFUSED]
    starts = [time_range.start_of(slot) for slot in range(time_range.slots)]
    for slot, key, part, requests in _fetch(REFUSALS, newest, starts):
        number_of_rows += part
        slots[slot] += requests
        if key is not None:
            keys[key] += requests
    return Refusals(slots, keys, number_of_rows >= MAX_REFUSED)


def count(rows: QuerySet[Response], time_range: TimeRange, of_any_time: QuerySet[Response] | None = None) -> Overview:
    """Count the newest `MAX_COUNTED` of the responses, which must be of the time range.

    `of_any_time` has the other filters of `rows`. With these, a part whose rows have not changed is not counted again.
    """
    unchanged, changed = _parts(rows, time_range, None if of_any_time is None else _sql(of_any_time))
    by_slot = defaultdict[int, list[ResponseFigures]](list)
    for number, part in (unchanged | changed).items():
        by_slot[min(number, time_range.slots - 1)].append(part.figures)
    slots = [ResponseFigures.merged(by_slot[slot]) for slot in range(time_range.slots)]
    total = ResponseFigures.merged(slots)
    cells = _cells(list(unchanged.values()), list(changed.values()))

    def merged(position: int) -> dict[Any, ResponseFigures]:
        groups = defaultdict[Any, list[ResponseFigures]](list)
        for cell, figures in cells.items():
            groups[cell[position]].append(figures)
        # A single group is the total.
        sums = {name: ResponseFigures.merged(group) if len(groups) > 1 else total for name, group in groups.items()}
        return dict(sorted(sums.items(), key=lambda pair: -pair[1].requests))

    return Overview(total, slots, *(merged(position) for position in range(4)))


def _cells(unchanged: Sequence[CountedPart], changed: Sequence[CountedPart]) -> dict[Cell, ResponseFigures]:
    """Return the figures of each cell, those in the unchanged parts from the cache."""
    if unchanged and changed:
        parts = (_cells(unchanged, []), _cells([], changed))
        return {cell: ResponseFigures.merged([part[cell] for part in parts if cell in part]) for cell in parts[0] | parts[1]}
    key = tuple(part.version for part in unchanged)
    cached = _cell_cache.get(key) if key else None
    if cached is not None:
        return cached
    by_cell = defaultdict[Cell, list[tuple[Any, ...]]](list)
    for part in (*unchanged, *changed):
        for row in part.rows:
            by_cell[row[1:5]].append(row[6:])
    cells = {cell: ResponseFigures.of_rows(rows) for cell, rows in by_cell.items()}
    if key:
        _cell_cache.put(key, cells, FIGURES_BYTES * len(cells))
    return cells


def _parts(
    rows: QuerySet[Response], time_range: TimeRange, filters: tuple[str, Any] | None
) -> tuple[dict[int, CountedPart], dict[int, CountedPart]]:
    """Return the parts with responses, by number: those from the cache, and those that were counted."""
    bounds = time_range.part_bounds
    keys = [(repr(filters), *ends) for ends in pairwise(bounds)]
    cached = {number: part for number, key in enumerate(keys) if filters and (part := _cache.get(key))}
    newest = newest_rows(rows, time_range.since, MAX_COUNTED)
    unchanged: dict[int, CountedPart] = {}
    if cached:
        signatures = _fetch(SIGNATURES, newest.values("id", "created_at", xmin=XMIN), bounds[:-1])
        unchanged = {
            number: part
            for number, _, *signature in signatures
            if (part := cached.get(number)) and part.version == (*keys[number], *signature)
        }
        changed = {number for number, *_ in signatures} - unchanged.keys()
        if not changed:
            return unchanged, {}
        newest = rows.filter(_within(changed, bounds), pk__gte=min(pk for _, pk, *_ in signatures)).order_by()
    by_part = defaultdict[int, list[tuple[Any, ...]]](list)
    for row in _fetch(FIGURES, newest.values(*COLUMNS, total_ms=TOTAL_MS, xmin=XMIN), bounds[:-1]):
        by_part[row[0]].append(row)
    parts = {number: CountedPart.of_rows(keys[number], rows_of_part) for number, rows_of_part in by_part.items()}
    if filters:
        for number, part in parts.items():
            _cache.put(keys[number], part, part.size)
    return unchanged, parts


def _within(parts: Collection[int], bounds: Sequence[datetime]) -> Q:
    """Return the condition for responses of these parts. The last part has no end. Adjacent parts make one range of times."""
    condition, last = Q(), len(bounds) - 2
    for first in parts:
        if first - 1 not in parts:
            end = next(number for number in range(first, last + 1) if number + 1 not in parts)
            times = Q(created_at__gte=bounds[first])
            condition |= times if end == last else times & Q(created_at__lt=bounds[end + 1])
    return condition


def _sql(rows: QuerySet[Any, Any]) -> tuple[str, tuple[Any, ...]] | None:
    """Return the query of the rows with its parameters; None if it can match nothing, for which Django raises."""
    try:
        return rows.query.sql_with_params()
    except EmptyResultSet:
        return None


def _fetch(sql: str, rows: QuerySet[Any, Any], starts: Sequence[datetime]) -> list[tuple[Any, ...]]:
    """Run a query of this module over the rows, in parts with these starts."""
    query = _sql(rows)
    if query is None:
        return []
    shown, params = query
    sql = sql.format(shown=shown, failed=Status.FAILED.value, steps=STEPS, shortest=MIN_RATE_TIME_S * 1000)
    connection = read_connection()
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        # Postgres cannot estimate the number of groups, and would sort all rows by group instead of hashing them.
        cursor.execute("SET LOCAL work_mem = '64MB'; SET LOCAL enable_sort = off")
        cursor.execute(sql, [*params, list(starts)])
        counts: list[tuple[Any, ...]] = cursor.fetchall()
        return counts


_cache: Final = PartCache[CountedPart](MAX_CACHE_BYTES)
_cell_cache: Final = PartCache[dict[Cell, ResponseFigures]](MAX_CELL_CACHE_BYTES)
