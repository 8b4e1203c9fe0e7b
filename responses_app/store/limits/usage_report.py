"""Report of usage in buckets of time, for the usage API and the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import DateTimeField, QuerySet, Sum
from django.db.models.functions import Trunc

from responses_app.models import UsageRecord

WIDTHS: Final[Mapping[str, tuple[str, int]]] = {"1m": ("minute", 60), "1h": ("hour", 3600), "1d": ("day", 86_400)}
SUMS: Final = ("requests", "input_tokens", "cached_tokens", "output_tokens", "tool_calls", "cost")


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Usage from `start` to before `end`, grouped by the columns `group_by`. Each entry of `filters` is a column and its values."""

    start: datetime
    end: datetime
    width: str
    group_by: Sequence[str] = ()
    filters: Mapping[str, Sequence[Any]] = field(default_factory=dict)


def sums(query: UsageQuery) -> QuerySet[UsageRecord, dict[str, Any]]:
    """Return a row for each bucket and group with usage: `bucket`, the columns of the group, and the sums."""
    unit, _ = WIDTHS[query.width]
    filters = {f"{column}__in": values for column, values in query.filters.items()}
    bucket = Trunc("start", unit, output_field=DateTimeField(), tzinfo=query.start.tzinfo)
    rows: QuerySet[UsageRecord, dict[str, Any]] = (
        UsageRecord.objects.filter(start__gte=query.start, start__lt=query.end, **filters)
        .annotate(bucket=bucket)
        .values("bucket", *query.group_by)
        .annotate(**{f"sum_{name}": Sum(name) for name in SUMS})
        .order_by("bucket", *query.group_by)
    )
    return rows
