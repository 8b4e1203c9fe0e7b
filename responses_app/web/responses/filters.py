"""Filters of the response list: parsed from the URL, applied as queries with bounded cost."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import Case, DurationField, ExpressionWrapper, F, FloatField, Q, QuerySet, When
from django.db.models.functions import Cast, Coalesce, Extract
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from responses_app.models import ApiFormat, Response, Status
from responses_app.utils.durations import parse_duration
from responses_app.web.responses import search
from responses_app.web.responses.failures import search_errors
from responses_app.web.responses.rows import MIN_RATE_TIME_S

# Filters without an index search only this number of responses per page, newest first.
UNINDEXED_WINDOW = 20_000
# Keys grow in the order of writing, and a row may be written this long after its `created_at`.
WRITE_DELAY = timedelta(minutes=10)
# Value of the status filter that shows refused requests in place of responses.
REFUSED = "refused"
# Value of the status filter that shows all responses that have not ended: queued and in progress.
RUNNING = "running"
# Value of the filter by API format -> value of the column.
API_FORMATS: Mapping[str, str] = {value or "responses": value for value in ApiFormat.values}
NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?")
MAX_BIGINT = 2**63 - 1
# Values of the filter that sorts, the largest first -> what is sorted by, and its name.
DURATION = ExpressionWrapper(F("ended_at") - F("created_at"), DurationField())
SORTS: Mapping[str, tuple[F | ExpressionWrapper[Any], str]] = {
    "seconds": (DURATION, "Duration"),
    "first": (F("time_to_first_token_ms"), "TTFT"),
    "tokens": (F("output_tokens"), "Output tokens"),
}
# As `ResponseStats.rate` has it, in milliseconds.
GENERATION_MS = Coalesce(
    Cast("generation_ms", FloatField()),
    Case(When(tools=[], then=Extract(DURATION, "epoch", output_field=FloatField()) * 1000.0 - F("time_to_first_token_ms"))),
    output_field=FloatField(),
)
# Days before today of the words for a time.
DAYS: Mapping[str, int] = {"today": 0, "yesterday": 1}
DATE, DAY = re.compile(r"\d{4}-?\d{2}-?\d{2}"), timedelta(days=1)
# More than any time zone offset and WRITE_DELAY together.
CALENDAR_MARGIN = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class ListFilters:
    """Filters of the list; an empty filter matches everything. `wrong` holds the error message of each invalid field."""

    project: str = ""
    status: str = ""
    model: str = ""
    key: int | None = None
    tool: str = ""
    api_format: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    first: float | None = None
    tokens: int | None = None
    rate: float | None = None
    sort: str = ""
    hides_refused: bool = False
    wrong: Mapping[str, str] = field(default_factory=dict)

    @property
    def allows_refused(self) -> bool:
        """Return whether refused requests may stand among the responses: not if a filter asks for what only responses have."""
        only_of_responses = self.status or self.model or self.tool or self.metadata or self.api_format is not None
        return not (self.hides_refused or only_of_responses or self._has_minimum or self.sort)

    @property
    def window(self) -> int | None:
        """Return the number of newest responses to search, None for all."""
        if self.text:
            return search.RECENT_WINDOW
        return UNINDEXED_WINDOW if self._has_minimum or self._searches_format or self.sort else None

    @property
    def _has_minimum(self) -> bool:
        return any(minimum is not None for minimum in (self.seconds, self.first, self.tokens, self.rate))

    @property
    def _searches_format(self) -> bool:
        """Return whether the API format has no index: the index of the two other formats begins with the project."""
        return bool(self.api_format) and not self.project

    def indexed(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """Apply the filters with an index."""
        status = "" if self.status == RUNNING else self.status
        values = {"project": self.project, "status": status, "model": self.model, "key_id": self.key}
        rows = rows.filter(**{name: value for name, value in values.items() if value})
        if self.status == RUNNING:
            rows = rows.filter(ended_at=None)
        if self.api_format is not None and not self._searches_format:
            rows = rows.filter(api_format=self.api_format)
        if self.tool:
            rows = rows.filter(~Q(tools=[]), tools__contains=[self.tool])
        if self.metadata:
            rows = rows.filter(~Q(metadata={}), metadata__contains=dict(self.metadata))
        return self._within_times(rows)

    def searched(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """Apply the filters without an index to `rows`, limited to `window` rows."""
        if self._searches_format:
            rows = rows.filter(api_format=self.api_format)
        if self.seconds is not None:
            rows = rows.filter(ended_at__gte=F("created_at") + timedelta(seconds=self.seconds))
        if self.first is not None:
            rows = rows.filter(time_to_first_token_ms__gte=self.first * 1000)
        if self.tokens is not None:
            rows = rows.filter(output_tokens__gte=self.tokens)
        if self.rate is not None:
            rows = rows.annotate(generation=GENERATION_MS).filter(generation__gte=MIN_RATE_TIME_S * 1000)
            rows = rows.filter(output_tokens__gte=F("generation") * (self.rate / 1000))
        if self.text:
            keys = list(rows.order_by().values_list("pk", flat=True))
            rows = rows.filter(search.HasKey([*search.search_recent(self.text, keys), *search_errors(self.text, keys)]))
        return rows

    def sorted_rows(self, rows: QuerySet[Response], after: int | None, visible: QuerySet[Response]) -> QuerySet[Response]:
        """Sort `rows` by the value of `sort`, the largest first, those without one last. Begin behind the response `after` of `visible`."""
        by = rows.annotate(value=SORTS[self.sort][0])
        if after is not None:
            last = visible.filter(pk=after).annotate(value=SORTS[self.sort][0]).values_list("value", flat=True).first()
            same = Q(value=last, pk__lt=after) if last is not None else Q(value=None, pk__lt=after)
            by = by.filter(same if last is None else same | Q(value__lt=last) | Q(value=None))
        return by.order_by(F("value").desc(nulls_last=True), "-pk")

    def search_older(
        self, rows: QuerySet[Response], floor: Response, projects: Sequence[str] | None
    ) -> QuerySet[Response] | None:
        """Search the rows behind the window with the text index. `floor` is the first of the rows. Return None for too many matches.

        `projects` are the visible projects of the user, None for all projects.
        """
        if self.project:
            projects = [self.project] if projects is None or self.project in projects else []
        keys = search.search_indexed(self.text, projects) if self.text else None
        if keys is None:
            return None
        rows = rows.filter(search.HasKey(key for key in keys if key <= floor.pk))
        return replace(self, text="").searched(rows)

    def _within_times(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """Filter by creation time, and by the range of keys around the time, because the list is ordered by key."""
        if self.since is not None:
            low = first_key_from(self.since - WRITE_DELAY)
            rows = rows.filter(created_at__gte=self.since, pk__gte=MAX_BIGINT if low is None else low)
        if self.until is not None:
            rows = rows.filter(created_at__lt=self.until)
            high = first_key_from(self.until + WRITE_DELAY)
            rows = rows if high is None else rows.filter(pk__lt=high)
        return rows


def first_key_from(moment: datetime) -> int | None:
    """Return the key of the first response created at or after `moment`."""
    rows = Response.objects.filter(created_at__gte=moment).order_by("created_at")
    return rows.values_list("pk", flat=True).first()


def parse_filters(query: QueryDict) -> ListFilters:
    """Parse the filters of a query. An invalid filter is ignored and reported in `wrong`."""
    wrong: dict[str, str] = {}
    values = {name: query.get(name, "").replace("\0", "\ufffd").strip() for name in NAMES}

    def number(name: str) -> float | None:
        if values[name] and not NUMBER.fullmatch(values[name]):
            wrong[name] = f"“{LABELS[name]}” must be a number."
        return None if not values[name] or name in wrong else float(values[name])

    zone = _zone(query.get("zone", ""))

    def moment(name: str) -> datetime | None:
        parsed = _bounded_time(values[name], zone, ends=name == "until")
        if values[name] and parsed is None:
            wrong[name] = f"“{LABELS[name]}” isn’t a valid time. Try yesterday, 2h or 2026-11-20T12:00."
        return parsed

    choices = {"status": (*Status.values, RUNNING, REFUSED), "format": API_FORMATS, "sort": SORTS}
    for name, allowed in choices.items():
        if values[name] and values[name] not in allowed:
            wrong[name], values[name] = f"“{LABELS[name]}” must be one of {', '.join(allowed)}.", ""
    key, tokens = number("key"), number("tokens")
    return ListFilters(
        project=values["project"],
        status=values["status"],
        model=values["model"],
        key=None if key is None else int(key),
        tool=values["tool"],
        api_format=API_FORMATS.get(values["format"]),
        since=moment("since"),
        until=moment("until"),
        text=values["q"],
        metadata=_pairs(values["meta"], wrong),
        seconds=number("seconds"),
        first=number("first"),
        tokens=None if tokens is None else int(tokens),
        rate=number("rate"),
        sort=values["sort"],
        hides_refused=values["refused"] == "hide",
        wrong=wrong,
    )


# Query parameters and their labels.
LABELS = {
    "q": "Search",
    "status": "Status",
    "model": "Model",
    "key": "Key",
    "tool": "Tool",
    "format": "API format",
    "since": "From",
    "until": "To",
    "meta": "Metadata",
    "seconds": "Min duration (s)",
    "first": "Min TTFT (s)",
    "tokens": "Min output tokens",
    "rate": "Min tokens/s",
    "sort": "Sort by",
    "project": "Project",
    "refused": "Hide refused requests",
}
NAMES = tuple(LABELS)
# Filters outside of “More filters”.
ALWAYS_SHOWN = frozenset({"q", "status", "model"})


def given_filters(query: QueryDict) -> dict[str, str]:
    """Return the filters of a query that are not empty, and the `zone` of the words in `DAYS`."""
    filter_values = {name: str(query[name]) for name in NAMES if query.get(name)}
    has_words = any(filter_values.get(name, "").strip().lower() in DAYS for name in ("since", "until"))
    return {**filter_values, "zone": str(query["zone"])} if has_words and query.get("zone") else filter_values


def _pairs(text: str, wrong: dict[str, str]) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(sep and name.strip() for name, sep, _ in pairs):
        wrong["meta"] = "“Metadata” must be key=value, with commas between several."
        return {}
    return {name.strip(): value.strip() for name, _, value in pairs}


def _zone(name: str) -> tzinfo:
    """Return the time zone of a name as `Europe/Berlin`, that of the pages for another text."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return timezone.get_current_timezone()


def _bounded_time(text: str, zone: tzinfo, *, ends: bool) -> datetime | None:
    """Parse a time. Return None for a time within `CALENDAR_MARGIN` of the first and last day of the calendar (year 9999)."""
    try:
        parsed = _parse_time(text, zone, DAY if ends else timedelta(0))
        if parsed is not None:
            parsed = parsed.astimezone(UTC)
            _ = parsed - CALENDAR_MARGIN, parsed + CALENDAR_MARGIN
    except OverflowError:
        return None
    return parsed


def _parse_time(text: str, zone: tzinfo, day: timedelta) -> datetime | None:
    """Parse a time, an age (`2h`), or `today` or `yesterday` in `zone`. A time without an offset is in the time zone of the pages.

    A day without a time means its midnight plus `day`.
    """
    if text.lower() in DAYS:
        today = timezone.localtime(timezone=zone).replace(hour=0, minute=0, second=0, microsecond=0)
        return today - timedelta(days=DAYS[text.lower()]) + day
    try:
        age = parse_duration(text) if text else None
    except ValueError:
        age = None
    if age is not None:
        return timezone.now() - age
    try:
        parsed = parse_datetime(text)
    except ValueError:
        return None
    if parsed is None or parsed.tzinfo:
        return parsed
    return parsed.replace(tzinfo=timezone.get_current_timezone()) + (day if DATE.fullmatch(text) else timedelta(0))
