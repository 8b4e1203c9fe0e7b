"""View of the usage API: tokens and requests in buckets of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.api import query
from responses_app.api.http import json_response
from responses_app.errors import Forbidden, InvalidRequest
from responses_app.models import ApiKey
from responses_app.store.limits.usage_report import WIDTHS, UsageQuery, sums
from responses_app.utils.user_model import User

# Default and largest number of buckets, as at OpenAI.
LIMITS: Final = {"1m": (60, 1440), "1h": (24, 168), "1d": (7, 31)}
GROUPS: Final = {"project_id": "project", "user_id": "user", "api_key_id": "key", "model": "model"}
FILTERS: Final = {"project_ids": "project", "user_ids": "user", "api_key_ids": "key", "models": "model"}
# Groups of OpenAI's that hold a single value here. Each usage is of an ordinary request: there are no batches, tiers or agents.
CONSTANTS: Final = {"batch": False, "service_tier": "default", "api_source": "unlabeled"}
MAX_TIME: Final = 4_102_444_800  # The year 2100.
NUMBERS: Final = ("user", "key")


async def completions(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/organization/usage/completions: the usage of the project of the key, or of all projects for a superuser."""
    width = query.choice(request, "bucket_width", "1d", tuple(WIDTHS))
    _, seconds = WIDTHS[width]
    if query.single(request, "start_time") is None:
        raise InvalidRequest("Missing required parameter: 'start_time'.", param="start_time", code="missing_required_parameter")
    start = query.integer(request, "start_time", 0, least=0, most=MAX_TIME)
    end = query.integer(request, "end_time", int(datetime.now(UTC).timestamp()) + 1, least=start + 1, most=MAX_TIME)
    limit = query.integer(request, "limit", LIMITS[width][0], least=1, most=LIMITS[width][1])
    first = query.integer(request, "page", start // seconds * seconds, least=0, most=MAX_TIME)
    last = min(first + limit * seconds, end)
    groups = _list(request, "group_by")
    if unknown := [name for name in groups if name not in GROUPS and name not in CONSTANTS]:
        names = ", ".join((*GROUPS, *CONSTANTS))
        raise InvalidRequest(
            f"Invalid value: '{unknown[0]}'. Supported values are: {names}.", param="group_by", code="invalid_value"
        )
    filters = {column: values for name, column in FILTERS.items() if (values := _values(request, name, column))}
    if not await sync_to_async(_sees_all)(key):
        if set(filters.get("project", ())) - {key.project}:
            raise Forbidden("This key shows the usage of its own project alone.", code="project_not_allowed")
        filters["project"] = [key.project]
    begin, stop = (datetime.fromtimestamp(time, UTC) for time in (max(first, start), last))
    usage = UsageQuery(begin, stop, width, [GROUPS[name] for name in groups if name in GROUPS], filters)
    is_empty = begin >= stop or query.boolean(request, "batch")
    rows = [] if is_empty else await sync_to_async(lambda: list(sums(usage)))()
    results: dict[datetime, list[dict[str, Any]]] = {}
    for row in rows:
        results.setdefault(row["bucket"], []).append(_result(row, groups))
    starts = range(first, last, seconds)
    data = [_bucket(time, min(time + seconds, end), results) for time in starts]
    more = last < end
    return json_response({"object": "page", "data": data, "has_more": more, "next_page": str(last) if more else None})


def _bucket(start: int, end: int, results: Mapping[datetime, Sequence[dict[str, Any]]]) -> dict[str, Any]:
    return {
        "object": "bucket",
        "start_time": start,
        "end_time": end,
        "results": results.get(datetime.fromtimestamp(start, UTC), []),
    }


def _result(row: Mapping[str, Any], groups: Sequence[str]) -> dict[str, Any]:
    """Return a result in OpenAI's form. Fields that the request does not group by are null."""
    values = {name: row[column] for name, column in GROUPS.items() if name in groups}
    ids = {name: None if values.get(name) is None else str(values[name]) for name in GROUPS}
    return {
        "object": "organization.usage.completions.result",
        "input_tokens": row["sum_input_tokens"],
        "input_cached_tokens": row["sum_cached_tokens"],
        "input_uncached_tokens": row["sum_input_tokens"] - row["sum_cached_tokens"],
        "output_tokens": row["sum_output_tokens"],
        "input_audio_tokens": 0,
        "output_audio_tokens": 0,
        "num_model_requests": row["sum_requests"],
        **ids,
        **{name: value if name in groups else None for name, value in CONSTANTS.items()},
    }


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
