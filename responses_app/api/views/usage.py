"""Views of the usage API: tokens and requests, and costs, in buckets of time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.api import query
from responses_app.api.http import json_response
from responses_app.errors import Forbidden, InvalidRequest
from responses_app.models import ApiKey
from responses_app.models.limits.fields import NANO
from responses_app.store.limits.usage_report import WIDTHS, UsageQuery, sums
from responses_app.utils.user_model import User

MAX_TIME: Final = 4_102_444_800  # The year 2100.
NUMBERS: Final = ("user", "key")


@dataclass(frozen=True, slots=True)
class Report:
    """What a report takes and shows, as at OpenAI. `limits` has the default and largest number of buckets of each width.

    `groups` and `filters` have the columns of usage. `constants` are groups of a single value: each usage is of an ordinary request,
    as there are no batches, tiers or agents. `figures` returns the figures of a row.
    """

    kind: str
    limits: Mapping[str, tuple[int, int]]
    groups: Mapping[str, str]
    filters: Mapping[str, str]
    constants: Mapping[str, Any]
    figures: Callable[[Mapping[str, Any]], Mapping[str, Any]]


async def completions(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/organization/usage/completions: the usage of the project of the key, or of all projects for a superuser."""
    return await _show(request, key, COMPLETIONS)


async def costs(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/organization/costs: the costs by the prices of the server, of the same projects as the usage."""
    return await _show(request, key, COSTS)


async def _show(request: HttpRequest, key: ApiKey, report: Report) -> HttpResponseBase:
    width = query.choice(request, "bucket_width", "1d", tuple(report.limits))
    _, seconds = WIDTHS[width]
    if query.single(request, "start_time") is None:
        raise InvalidRequest("Missing required parameter: 'start_time'.", param="start_time", code="missing_required_parameter")
    start = query.integer(request, "start_time", 0, least=0, most=MAX_TIME)
    end = query.integer(request, "end_time", int(datetime.now(UTC).timestamp()) + 1, least=start + 1, most=MAX_TIME)
    default, largest = report.limits[width]
    limit = query.integer(request, "limit", default, least=1, most=largest)
    first = query.integer(request, "page", start // seconds * seconds, least=0, most=MAX_TIME)
    last = min(first + limit * seconds, end)
    groups = _list(request, "group_by")
    if unknown := [name for name in groups if name not in report.groups and name not in report.constants]:
        names = ", ".join((*report.groups, *report.constants))
        raise InvalidRequest(
            f"Invalid value: '{unknown[0]}'. Supported values are: {names}.", param="group_by", code="invalid_value"
        )
    filters = {column: values for name, column in report.filters.items() if (values := _values(request, name, column))}
    if not await sync_to_async(_sees_all)(key):
        if set(filters.get("project", ())) - {key.project}:
            raise Forbidden("This key shows the usage of its own project alone.", code="project_not_allowed")
        filters["project"] = [key.project]
    begin, stop = _moment(max(first, start)), _moment(last)
    usage = UsageQuery(begin, stop, width, [report.groups[name] for name in groups if name in report.groups], filters)
    is_empty = begin >= stop or query.boolean(request, "batch")
    rows = [] if is_empty else await sync_to_async(lambda: list(sums(usage)))()
    results: dict[datetime, list[dict[str, Any]]] = {}
    for row in rows:
        results.setdefault(row["bucket"], []).append(_result(report, row, groups))
    starts = range(first, last, seconds)
    # The first and the last bucket are parts of a day where the range begins or ends within it.
    data = [_bucket(max(time, start), min(time + seconds, end), results.get(_moment(time), [])) for time in starts]
    more = last < end
    return json_response({"object": "page", "data": data, "has_more": more, "next_page": str(last) if more else None})


def _bucket(start: int, end: int, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"object": "bucket", "start_time": start, "end_time": end, "results": results}


def _moment(time: int) -> datetime:
    return datetime.fromtimestamp(time, UTC)


def _result(report: Report, row: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    """Return a result in OpenAI's form. Fields that the request does not group by are null."""
    values = {name: row[column] for name, column in report.groups.items() if name in groups}
    ids = {name: None if values.get(name) is None else str(values[name]) for name in report.groups}
    constants = {name: value if name in groups else None for name, value in report.constants.items()}
    return {"object": report.kind, **report.figures(row), **ids, **constants}


def _usage(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "input_tokens": row["sum_input_tokens"],
        "input_cached_tokens": row["sum_cached_tokens"],
        "input_uncached_tokens": row["sum_input_tokens"] - row["sum_cached_tokens"],
        "output_tokens": row["sum_output_tokens"],
        "input_audio_tokens": 0,
        "output_audio_tokens": 0,
        "num_model_requests": row["sum_requests"],
    }


def _cost(row: Mapping[str, Any]) -> Mapping[str, Any]:
    # A line item is a model, with tokens of several prices.
    amount = {"value": row["sum_cost"] / NANO, "currency": settings.RESPONSES_CURRENCY.lower()}
    return {"amount": amount, "quantity": None, "quantity_unit": None}


COMPLETIONS: Final = Report(
    kind="organization.usage.completions.result",
    limits={"1m": (60, 1440), "1h": (24, 168), "1d": (7, 31)},
    groups={"project_id": "project", "user_id": "user", "api_key_id": "key", "model": "model"},
    filters={"project_ids": "project", "user_ids": "user", "api_key_ids": "key", "models": "model"},
    constants={"batch": False, "service_tier": "default", "api_source": "unlabeled"},
    figures=_usage,
)
COSTS: Final = Report(
    kind="organization.costs.result",
    limits={"1d": (7, 180)},
    groups={"project_id": "project", "user_id": "user", "api_key_id": "key", "line_item": "model"},
    filters={"project_ids": "project", "api_key_ids": "key", "line_items": "model"},
    constants={"api_source": "unlabeled"},
    figures=_cost,
)


def _list(request: HttpRequest, name: str) -> list[str]:
    return [*request.GET.getlist(name), *request.GET.getlist(f"{name}[]")]


def _values(request: HttpRequest, name: str, column: str) -> list[Any]:
    """Return the values of a filter. Raises InvalidRequest for an id that is no number."""
    values = _list(request, name)
    if column not in NUMBERS:
        return [value.replace("\0", "\ufffd") for value in values]
    if wrong := [value for value in values if not value.isascii() or not value.isdigit() or len(value) > 9]:
        raise InvalidRequest(f"Invalid '{name}': '{wrong[0][:40]}' is not an id.", param=name, code="invalid_value")
    return [int(value) for value in values]


def _sees_all(key: ApiKey) -> bool:
    """Return whether the browser key of a superuser asks: API keys see their own project alone."""
    return key.user_pk is not None and User.objects.filter(pk=key.user_pk, is_superuser=True, is_active=True).exists()
