"""Overview page: figures of a time range, running responses, engines and the last failures, in the projects of the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from math import exp, floor
from typing import Any
from urllib.parse import urlencode

from django.db.models import Count, QuerySet
from django.http import HttpRequest, QueryDict
from django.urls import reverse
from django.utils import timezone

from responses_app.access.permissions import NO_PROJECT, projects, projects_with_role, visible_responses
from responses_app.dialects.families.detection import Detection
from responses_app.engines.pool.member import MemberStatus
from responses_app.models import ApiFormat, ApiKey, Response, Role, Status
from responses_app.web.overview.charts import Chart, Slot, chart
from responses_app.web.overview.figures import Overview, ResponseFigures, count, count_refused
from responses_app.web.overview.percentiles import STEPS
from responses_app.web.overview.time_range import TimeRange
from responses_app.web.responses.filters import API_FORMATS, REFUSED, RUNNING, parse_filters
from responses_app.web.responses.refused import matching_refusals
from responses_app.web.responses.response_list import LARGE_COLUMNS
from responses_app.web.responses.rows import ResponseRow, rows

# Time ranges by name, as the list of responses reads them: the step and the number of parts.
RANGES = {
    "1h": ("1 hour", timedelta(minutes=2), 30),
    "24h": ("24 hours", timedelta(hours=1), 24),
    "7d": ("7 days", timedelta(hours=6), 28),
    "30d": ("30 days", timedelta(days=1), 30),
}
DEFAULT_RANGE = "24h"
# Times in links, in UTC.
TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
NARROWING = ("model", "key", "project", "format")
MAX_RUNNING = MAX_FAILURES = 5
# Newest failures in which equal ones are counted.
COUNTED_FAILURES = 200
# Rows of a table by model, key or project.
MAX_GROUPS = 10
# Percentiles are exact to this factor.
PRECISION = exp(1 / STEPS / 2)


@dataclass(frozen=True, slots=True)
class LinkedNumber:
    """Number with the query of the list that shows its responses."""

    text: str
    query: str


@dataclass(frozen=True, slots=True)
class Row:
    """Row of a table: a name with the query that narrows the page to it, if there is one, and numbers.

    Only keys have the number of refused requests.
    """

    name: str
    query: str
    cells: Sequence[LinkedNumber]
    refused: LinkedNumber | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Table of the figures by model, key, project or API format. `left_out` rows are not shown, nor `keyless` requests."""

    title: str
    rows: Sequence[Row]
    left_out: int
    keyless: int = 0


@dataclass(frozen=True, slots=True)
class ServedEngine:
    """Model with its state. `members` are the engines of a pool, each with its share of the requests in percent."""

    name: str
    state: str
    family: Detection | None
    members: Sequence[tuple[MemberStatus, int]]


@dataclass(frozen=True, slots=True)
class EngineRow:
    """Model with its responses that have not ended, and the cached share of the input tokens of the time range in percent."""

    engine: ServedEngine
    running: int
    queued: int
    cached: int | None


def overview_context(request: HttpRequest, served: Sequence[ServedEngine]) -> dict[str, Any]:
    """Return the context of the page, with the filters `range` and `NARROWING` of the query."""
    name = request.GET.get("range", "")
    name = name if name in RANGES else DEFAULT_RANGE
    _, step, parts = RANGES[name]
    filters = parse_filters(request.GET)
    narrowing = {field: request.GET[field] for field in NARROWING if request.GET.get(field) and field not in filters.wrong}
    query = {**narrowing, "since": name}
    visible = visible_responses(request.user)
    # The range ends with the current second, as the links have times in whole seconds.
    end = timezone.now().replace(microsecond=0) + timedelta(seconds=1)
    time_range = TimeRange.until(end, name, step, parts)
    counted = {**narrowing, "since": f"{time_range.since.astimezone(UTC):{TIME_FORMAT}}"}
    of_any_time, shown = _narrowed(visible, narrowing), _narrowed(visible, counted)
    overview = count(shown, time_range, of_any_time)
    refusals = matching_refusals(request.user, parse_filters(QueryDict(urlencode(counted))))
    # A refused request has no model and no API format.
    if narrowing.keys() & {"model", "format"}:
        refusals = refusals.none()
    refused = count_refused(refusals, time_range)
    drawn = chart(overview, time_range, refused.slots)
    own_projects = projects(request.user)
    names = _key_names(own_projects)
    return {
        "section": "overview",
        "projects": own_projects,
        "no_project": NO_PROJECT,
        "may_chat": bool(projects_with_role(request.user, Role.MEMBER)),
        "list": reverse("responses"),
        "ranges": [(one, label, urlencode({**narrowing, "range": one})) for one, (label, _, _) in RANGES.items()],
        "selected": name,
        "narrowing": narrowing,
        "key_name": names.get(_number(narrowing.get("key", "")), ""),
        "format_name": "" if filters.api_format is None else ApiFormat(filters.api_format).label,
        "overview": overview,
        "total": cells(overview.total, query),
        "refused": LinkedNumber(f"{refused.total:,}", urlencode({**query, "status": REFUSED})),
        "is_refused_partial": refused.is_partial,
        "chart": drawn,
        "times": _times(drawn, narrowing),
        "groups": _groups(names, overview, query, refused.keys),
        "running": rows(_newest(of_any_time.filter(ended_at=None), MAX_RUNNING)),
        "running_query": urlencode({**narrowing, "status": RUNNING}),
        "failures": _failures(shown.filter(status=Status.FAILED)),
        "failures_query": urlencode({**query, "status": Status.FAILED}),
        "engines": _engines(visible, overview, served),
    }


def numbers(figures: ResponseFigures) -> list[str]:
    """Return the numbers of a table row. Durations are in seconds."""
    counts = (figures.requests, figures.failed, figures.input_tokens, figures.output_tokens)
    return [*(f"{number:,}" for number in counts), *(significant(value) for _, value in _percentiles(figures))]


def cells(figures: ResponseFigures, query: Mapping[str, str]) -> list[LinkedNumber]:
    """Return the numbers of a table row, each with the query of its responses."""
    # Most numbers of a row lead to the same list.
    same = urlencode(query)
    more = ["", f"&status={Status.FAILED.value}", "", "", *(_minimum(name, value) for name, value in _percentiles(figures))]
    return [LinkedNumber(text, same + narrower) for text, narrower in zip(numbers(figures), more, strict=True)]


def _percentiles(figures: ResponseFigures) -> list[tuple[str, float | None]]:
    """Return each percentile with the filter by its minimum, in seconds or tokens per second."""
    distributions = (("first", figures.first), ("rate", figures.rate), ("seconds", figures.total))
    return [(name, value and value / 1000) for name, one in distributions for value in one.percentiles]


def _minimum(name: str, value: float | None) -> str:
    """Return the filter by a percentile, which is exact to PRECISION. It is rounded down, so that the list has the percentile."""
    return "" if value is None else f"&{name}={floor(value / PRECISION * 1000) / 1000:.3f}"


def significant(value: float | None) -> str:
    """Format a number as 0.012, 0.12, 1.25, 12.5 or 1,250; nothing for None."""
    if value is None:
        return ""
    decimals = next((decimals for limit, decimals in ((100, 0), (10, 1), (0.1, 2)) if value >= limit), 3)
    return f"{value:,.{decimals}f}"


def _engines(visible: QuerySet[Response], overview: Overview, served: Sequence[ServedEngine]) -> list[EngineRow]:
    running = visible.filter(ended_at=None).order_by().values_list("model", "status").annotate(number=Count("pk"))
    counts = {(model, status): number for model, status, number in running}
    return [
        EngineRow(
            engine,
            counts.get((engine.name, Status.IN_PROGRESS), 0),
            counts.get((engine.name, Status.QUEUED), 0),
            cached_share(overview.models.get(engine.name, ResponseFigures())),
        )
        for engine in served
    ]


def cached_share(figures: ResponseFigures) -> int | None:
    """Return the cached share of the input tokens in percent, None without input tokens."""
    return round(100 * figures.cached_tokens / figures.input_tokens) if figures.input_tokens else None


def _times(drawn: Chart, narrowing: Mapping[str, str]) -> list[tuple[Slot, str, list[str]]]:
    """Return for each part of the time axis: the part, the query of its responses, and its numbers."""
    narrowed = urlencode(narrowing) + "&" if narrowing else ""
    return [
        (
            slot,
            narrowed + urlencode({"since": f"{slot.since:{TIME_FORMAT}}", "until": f"{slot.until:{TIME_FORMAT}}"}),
            numbers(slot.figures),
        )
        for slot in drawn.slots
    ]


def _groups(
    names: Mapping[int | None, str], overview: Overview, query: Mapping[str, str], refused: Mapping[int, int]
) -> list[Group]:
    by_key = {pk: overview.keys.get(pk, ResponseFigures()) for pk in (*overview.keys, *refused) if pk is not None}
    groups = [
        _group("Model", "model", [(name, name, figures) for name, figures in overview.models.items()], query),
        replace(
            _group(
                "Key", "key", [(str(pk), names.get(pk, str(pk)), figures) for pk, figures in by_key.items()], query, refused
            ),
            keyless=overview.keys.get(None, ResponseFigures()).requests,
        ),
        _group("Project", "project", [(name, name, figures) for name, figures in overview.projects.items()], query),
        _group("API format", "format", _api_formats(overview), query),
    ]
    # A single row of all responses repeats the totals.
    total = f"{overview.total.requests:,}"
    return [group for group in groups if group.rows and [row.cells[0].text for row in group.rows] != [total]]


def _api_formats(overview: Overview) -> list[tuple[str, str, ResponseFigures]]:
    """Return the figures by API format, if there are requests of other formats than Responses."""
    figures = overview.api_formats
    named = [(name, ApiFormat(value).label, figures[value]) for name, value in API_FORMATS.items() if value in figures]
    return named if any(figures) else []


def _group(
    title: str,
    field: str,
    named: Sequence[tuple[str, str, ResponseFigures]],
    query: Mapping[str, str],
    refused: Mapping[int, int] | None = None,
) -> Group:
    shown = []
    for value, name, figures in named[:MAX_GROUPS]:
        narrowed = {**query, field: value}
        home = urlencode({"range" if key == "since" else key: text for key, text in narrowed.items()})
        row = Row(name, home, cells(figures, narrowed))
        if refused is not None:
            number = LinkedNumber(f"{refused.get(int(value), 0):,}", urlencode({**narrowed, "status": REFUSED}))
            row = replace(row, refused=number)
        shown.append(row)
    return Group(title, shown, max(len(named) - MAX_GROUPS, 0))


def _narrowed(responses: QuerySet[Response], query: Mapping[str, str]) -> QuerySet[Response]:
    filters = parse_filters(QueryDict(urlencode(query)))
    narrowed = filters.indexed(responses)
    # Without an index within the time range, whose responses are all read anyway.
    return narrowed if filters.api_format is None else narrowed.filter(api_format=filters.api_format)


def _key_names(of_projects: Sequence[str]) -> dict[int | None, str]:
    keys = ApiKey.objects.filter(project__in=of_projects).values_list("pk", "name", "prefix")
    return {pk: f"{name} ({prefix}…)" for pk, name, prefix in keys}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _failures(failed: QuerySet[Response]) -> list[tuple[ResponseRow, int]]:
    """Return the newest failure of each model and code, newest first, with their number among the last COUNTED_FAILURES."""
    kinds = Counter[tuple[str, str]]()
    newest: list[int] = []
    for pk, model, code in failed.order_by("-pk").values_list("pk", "model", "error_code")[:COUNTED_FAILURES]:
        if (model, code) not in kinds:
            newest.append(pk)
        kinds[model, code] += 1
    lines = rows(_newest(failed.filter(pk__in=newest[:MAX_FAILURES]), MAX_FAILURES))
    return [(line, kinds[line.response.model, line.response.error_code]) for line in lines]


def _newest(responses: QuerySet[Response], limit: int) -> list[Response]:
    return list(responses.order_by("-pk").defer(*LARGE_COLUMNS)[:limit])
