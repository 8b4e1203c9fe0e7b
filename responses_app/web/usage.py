"""Usage page: tokens, requests and cost of the projects of a user by day, key and model, and the same as CSV."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from responses_app.access.permissions import restricted_to
from responses_app.models import ApiKey
from responses_app.models.limits.fields import NANO
from responses_app.store.limits.usage_report import UsageQuery, sums
from responses_app.utils.csv_cells import csv_cell
from responses_app.web.delivery.replica_pages import reads_replica
from responses_app.web.private import private

# Limits of spend are by calendar month.
MONTH: Final = "month"
RANGES: Final = {"1": "1 day", "7": "7 days", "30": "30 days", MONTH: "This month", "90": "90 days"}
COLUMNS: Final = (
    "day",
    "project",
    "key",
    "model",
    "requests",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "tool_calls",
    "cost",
)


@private("GET", "HEAD")
@reads_replica
def show(request: HttpRequest) -> HttpResponse:
    """Show at GET /usage the usage by day, and by project, key and model."""
    days = _days(request)
    by_day = _usage(request, days, ())
    most = max((row["tokens"] for row in by_day), default=1)
    groups: dict[tuple[str, ...], dict[str, Any]] = {}
    for row in _usage(request, days, ("project", "key", "model")):
        total = groups.setdefault((row["project"], row["key"], row["model"]), {**row, **dict.fromkeys(COLUMNS[4:], 0)})
        for name in COLUMNS[4:]:
            total[name] += row[name]
    context = {
        "section": "overview",
        "days": days,
        "choices": RANGES.items(),
        "by_day": by_day[::-1],
        "most": most,
        "groups": sorted(groups.values(), key=lambda row: -row["input_tokens"] - row["output_tokens"]),
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
    for row in _usage(request, _days(request), ("project", "key", "model")):
        writer.writerow([csv_cell(row[name]) for name in COLUMNS])
    return response


def _days(request: HttpRequest) -> str:
    days = request.GET.get("days", "")
    return days if days in RANGES else "30"


def _usage(request: HttpRequest, days: str, group_by: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the usage that the user may see, with the names of keys, in days of UTC."""
    now = datetime.now(UTC)
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    start = today.replace(day=1) if days == MONTH else today - timedelta(days=int(days) - 1)
    projects = restricted_to(request.user)
    filters = {} if projects is None else {"project": projects}
    rows = list(sums(UsageQuery(start, now + timedelta(seconds=1), "1d", group_by, filters)))
    names = dict(ApiKey.objects.filter(pk__in={row.get("key") for row in rows}).values_list("pk", "name"))
    return [_shown(row, names) for row in rows]


def _shown(row: dict[str, Any], names: dict[int, str]) -> dict[str, Any]:
    key = row.get("key")
    shown = {name: row[f"sum_{name}"] for name in COLUMNS[4:]}
    return {
        **shown,
        "cost": row["sum_cost"] / NANO,
        "cost_text": "< 0.01" if 0 < row["sum_cost"] < NANO // 100 else f"{row['sum_cost'] / NANO:.2f}",
        "tokens": row["sum_input_tokens"] + row["sum_output_tokens"],
        "day": row["bucket"].date(),
        "project": row.get("project", ""),
        "model": row.get("model", ""),
        "key": "Browser" if key is None else names.get(key, f"Key {key}"),
    }
