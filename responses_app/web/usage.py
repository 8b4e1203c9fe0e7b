"""Usage page: tokens, requests and cost of the projects of a user by day, key and model, and the same as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.access.permissions import restricted_to
from responses_app.models import ApiKey
from responses_app.models.limits.fields import NANO
from responses_app.store.limits.usage_report import SUMS, UsageQuery, sums
from responses_app.utils.csv_cells import csv_cell
from responses_app.web.delivery.replica_pages import reads_replica
from responses_app.web.private import private

# Limits of spend are by calendar month.
MONTH: Final = "month"
LAST_MONTH: Final = "last-month"
RANGES: Final = {"1": "1 day", "7": "7 days", "30": "30 days", MONTH: "This month", LAST_MONTH: "Last month", "90": "90 days"}
GROUP_BY: Final = ("project", "key", "model")
# The key has its name, which may stand twice in a project, and its id.
COLUMNS: Final = ("day", *GROUP_BY, *SUMS, "key_id")


@private("GET", "HEAD")
@reads_replica
def show(request: HttpRequest) -> HttpResponse:
    """Show at GET /usage the usage by day, by project, and by project, key and model."""
    days = _days(request)
    by_day = _usage(request, days, ())
    most = max((row["tokens"] for row in by_day), default=1)
    rows = _usage(request, days, GROUP_BY)
    context = {
        "section": "overview",
        "days": days,
        "choices": RANGES.items(),
        "by_day": by_day[::-1],
        "most": most,
        "projects": _totals(rows, "project"),
        # Keys of a project may have the same name.
        "groups": _totals(rows, "project", "key_id", "model"),
        "currency": settings.RESPONSES_CURRENCY if settings.RESPONSES_PRICES else "",
    }
    return render(request, "web/usage.html", context)


@private("GET", "HEAD")
@reads_replica
def export(request: HttpRequest) -> HttpResponse:
    """Return at GET /usage.csv a line for each day, project, key and model."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="usage.csv"'
    writer = csv.writer(response)
    writer.writerow(COLUMNS)
    for row in _usage(request, _days(request), GROUP_BY):
        row["cost"] /= NANO
        writer.writerow([csv_cell(row[name]) for name in COLUMNS])
    return response


def _days(request: HttpRequest) -> str:
    days = request.GET.get("days", "")
    return days if days in RANGES else "30"


def _totals(rows: Iterable[Mapping[str, Any]], *columns: str) -> list[dict[str, Any]]:
    """Add up the rows with the same values of `columns`, the most tokens first."""
    totals: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        total = totals.setdefault(tuple(row[name] for name in columns), {**row, **dict.fromkeys(SUMS, 0)})
        for name in SUMS:
            total[name] += row[name]
        total["cost_text"] = _cost_text(total["cost"])
    return sorted(totals.values(), key=lambda row: -row["input_tokens"] - row["output_tokens"])


def _usage(request: HttpRequest, days: str, group_by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the usage that the user may see, with the names of keys, in days of UTC."""
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = now + timedelta(seconds=1)
    if days == LAST_MONTH:
        end = today.replace(day=1)
        start = (end - timedelta(days=1)).replace(day=1)
    else:
        start = today.replace(day=1) if days == MONTH else today - timedelta(days=int(days) - 1)
    projects = restricted_to(request.user)
    filters = {} if projects is None else {"project": projects}
    rows = list(sums(UsageQuery(start, end, "1d", group_by, filters)))
    keys = ApiKey.objects.filter(pk__in={row.get("key") for row in rows}).in_bulk()
    return [_shown(row, keys) for row in rows]


def _shown(row: dict[str, Any], keys: Mapping[int, ApiKey]) -> dict[str, Any]:
    """Return a row with a name of its key. The cost is in billionths of the currency unit."""
    pk = row.get("key")
    key = keys.get(pk) if pk is not None else None
    return {
        **{name: row[f"sum_{name}"] for name in SUMS},
        "cost_text": _cost_text(row["sum_cost"]),
        "tokens": row["sum_input_tokens"] + row["sum_output_tokens"],
        "day": row["bucket"].date(),
        "project": row.get("project", ""),
        "model": row.get("model", ""),
        "key": "Browser" if pk is None else f"Key {pk}" if key is None else key.name,
        "key_prefix": "" if key is None else key.prefix,
        "key_id": "" if pk is None else pk,
    }


def _cost_text(cost: int) -> str:
    return "< 0.01" if 0 < cost < NANO // 100 else f"{cost / NANO:.2f}"
