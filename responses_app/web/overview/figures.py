"""Figures of the responses of a time range, in total and by time, model, key, project and API format: one query, with bounded cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.core.exceptions import EmptyResultSet
from django.db import transaction
from django.db.models import F, FloatField, Func, QuerySet

from responses_app.models import RefusedRequest, Response, Status
from responses_app.store.replica import read_connection
from responses_app.web.overview.percentiles import STEPS, Distribution
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
# In the query of the responses, whose limit keeps Postgres from computing it again for each use.
TOTAL_MS = Func(
    F("ended_at"),
    F("created_at"),
    arg_joiner=" - ",
    template="date_part('epoch', %(expressions)s) * 1000",
    output_field=FloatField(),
)
# `{shown}` is the query of the responses. The codes of each group are one value of 2 bytes each, because 100,000 values of their own
# would take longer to fetch than to count. Milliseconds, and tokens per 1,000 s. The generation time is that of `ResponseStats`.
FIGURES = """
WITH shown AS (SELECT * FROM ({shown}) AS responses,
  LATERAL (SELECT coalesce(generation_ms, CASE WHEN tools = '{{}}' THEN total_ms - time_to_first_token_ms END) AS rate_ms) AS part)
SELECT width_bucket(created_at, %s::timestamptz[]) - 1, model, key_id, project, api_format,
  count(*), count(*) FILTER (WHERE status = '{failed}'), sum(input_tokens), sum(cached_tokens), sum(output_tokens),
  string_agg(int2send(round({steps} * ln(greatest(time_to_first_token_ms, 1)::float8))::int2), '')
    FILTER (WHERE time_to_first_token_ms IS NOT NULL),
  string_agg(int2send(round({steps} * ln(1e6::float8 * output_tokens / rate_ms))::int2), '')
    FILTER (WHERE rate_ms >= {shortest} AND output_tokens > 0),
  string_agg(int2send(round({steps} * ln(greatest(total_ms, 1)))::int2), '') FILTER (WHERE ended_at IS NOT NULL)
FROM shown GROUP BY 1, 2, 3, 4, 5
"""
# `{shown}` is the query of the refused requests: rows, and the requests of each part of the time range and key.
REFUSALS = """
WITH shown AS ({shown})
SELECT width_bucket(created_at, %s::timestamptz[]) - 1, key_id, count(*), sum(count)::bigint FROM shown GROUP BY 1, 2
"""
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Time range of the page: from `since`, in `slots` parts of `step`."""

    name: str
    since: datetime
    step: timedelta
    slots: int

    def start_of(self, slot: int) -> datetime:
        """Return the time at which a part begins."""
        return self.since + slot * self.step


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
        sums = ("requests", "failed", "input_tokens", "cached_tokens", "output_tokens")
        return cls(
            *(sum(getattr(part, name) for part in parts) for name in sums),
            *(Distribution.merged(getattr(part, name) for part in parts) for name in ("first", "rate", "total")),
        )


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
    for slot, key, part, requests in _fetch(REFUSALS, newest, time_range):
        number_of_rows += part
        slots[slot] += requests
        if key is not None:
            keys[key] += requests
    return Refusals(slots, keys, number_of_rows >= MAX_REFUSED)


def count(rows: QuerySet[Response], time_range: TimeRange) -> Overview:
    """Count the newest `MAX_COUNTED` of the responses, which must be of the time range."""
    counts = _fetch(FIGURES, rows.order_by("-pk").values(*COLUMNS, total_ms=TOTAL_MS)[:MAX_COUNTED], time_range)
    by_slot = _grouped(counts, _slot)
    slots = [
        ResponseFigures.of_rows(by_slot[slot]) if slot in by_slot else ResponseFigures() for slot in range(time_range.slots)
    ]
    cells = {cell: ResponseFigures.of_rows(parts) for cell, parts in _grouped(counts, _cell).items()}

    def merged(name_of: Callable[[tuple[Any, ...]], Name]) -> dict[Name, ResponseFigures]:
        parts = defaultdict[Name, list[ResponseFigures]](list)
        for cell, figures in cells.items():
            parts[name_of(cell)].append(figures)
        sums = {name: ResponseFigures.merged(of_name) for name, of_name in parts.items()}
        return dict(sorted(sums.items(), key=lambda pair: -pair[1].requests))

    return Overview(
        ResponseFigures.merged(slots),
        slots,
        merged(lambda cell: cell[0]),
        merged(lambda cell: cell[1]),
        merged(lambda cell: cell[2]),
        merged(lambda cell: cell[3]),
    )


def _slot(row: tuple[Any, ...]) -> int:
    return int(row[0])


def _cell(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return row[1:5]


def _fetch(sql: str, rows: QuerySet[Any, Any], time_range: TimeRange) -> list[tuple[Any, ...]]:
    """Run a query of this module over the rows."""
    try:
        shown, params = rows.query.sql_with_params()
    except EmptyResultSet:
        # Django raises if the query can match nothing.
        return []
    sql = sql.format(shown=shown, failed=Status.FAILED.value, steps=STEPS, shortest=MIN_RATE_TIME_S * 1000)
    connection = read_connection()
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        # Postgres cannot estimate the number of groups, and would sort all rows by group instead of hashing them.
        cursor.execute("SET LOCAL work_mem = '64MB'; SET LOCAL enable_sort = off")
        cursor.execute(sql, [*params, [time_range.start_of(slot) for slot in range(time_range.slots)]])
        counts: list[tuple[Any, ...]] = cursor.fetchall()
        return counts


def _grouped(rows: Iterable[tuple[Any, ...]], key: Callable[[tuple[Any, ...]], Name]) -> dict[Name, list[tuple[Any, ...]]]:
    """Return the figures of the rows by group."""
    groups = defaultdict[Name, list[tuple[Any, ...]]](list)
    for row in rows:
        groups[key(row)].append(row[5:])
    return groups
