"""The filters of the response list: read from the URL, told to Postgres so that it never reads a whole table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from django.db.models import F, Q, QuerySet
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from responses_app.durations import parse_duration
from responses_app.models import Response, Status
from responses_app.web.responses import search

# What no index answers is looked for among so many of the newest responses, and further back when somebody asks.
FAR = 20_000
# A row is written a little after the moment that it tells; the order of the keys is that of writing.
SLACK = timedelta(minutes=10)
NUMBER = re.compile(r"\d{1,9}(\.\d{1,6})?")
BIGGEST = 2**63 - 1
# More than any time zone and SLACK add to a time or take from it.
ROUND = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class ListFilters:
    """What the list is narrowed to; what is empty narrows nothing. `wrong` says what could not be understood, by field."""

    project: str = ""
    status: str = ""
    model: str = ""
    key: int | None = None
    tool: str = ""
    since: datetime | None = None
    until: datetime | None = None
    text: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    seconds: float | None = None
    tokens: int | None = None
    wrong: Mapping[str, str] = field(default_factory=dict)

    @property
    def window(self) -> int | None:
        """Among how many of the newest responses is looked; None for all."""
        if self.text:
            return search.NEAR
        return FAR if self.seconds is not None or self.tokens is not None else None

    def indexed(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """Narrowed by what has an index."""
        given = {"project": self.project, "status": self.status, "model": self.model, "key_id": self.key}
        rows = rows.filter(**{name: value for name, value in given.items() if value})
        if self.tool:
            rows = rows.filter(~Q(tools=[]), tools__contains=[self.tool])
        if self.metadata:
            rows = rows.filter(~Q(metadata={}), metadata__contains=dict(self.metadata))
        return self._timed(rows)

    def searched(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """Narrowed by the rest. `rows` are few already."""
        if self.seconds is not None:
            rows = rows.filter(ended_at__gte=F("created_at") + timedelta(seconds=self.seconds))
        if self.tokens is not None:
            rows = rows.filter(output_tokens__gte=self.tokens)
        if self.text:
            rows = rows.filter(pk__in=search.search_recent(self.text, list(rows.order_by().values_list("pk", flat=True))))
        return rows

    def beyond(self, rows: QuerySet[Response], floor: Response, mine: Sequence[str] | None) -> QuerySet[Response] | None:
        """Of those behind the ones that were looked through what has the words of the text; None if there are too many.

        `mine` are the projects of the person, None for all of them.
        """
        chosen = mine if not self.project else [self.project] if mine is None or self.project in mine else []
        found = search.search_indexed(self.text, chosen) if self.text else None
        if found is None:
            return None
        rows = rows.filter(pk__in=[key for key in found if key <= floor.pk])
        return replace(self, text="").searched(rows)

    def _timed(self, rows: QuerySet[Response]) -> QuerySet[Response]:
        """By time, and by the keys around that time, which the list is in the order of."""
        if self.since is not None:
            low = _first(self.since - SLACK)
            rows = rows.filter(created_at__gte=self.since, pk__gte=BIGGEST if low is None else low)
        if self.until is not None:
            rows = rows.filter(created_at__lt=self.until)
            high = _first(self.until + SLACK)
            rows = rows if high is None else rows.filter(pk__lt=high)
        return rows


def _first(moment: datetime) -> int | None:
    """The key of the first response from then on."""
    rows = Response.objects.filter(created_at__gte=moment).order_by("created_at")
    return rows.values_list("pk", flat=True).first()


def read(query: QueryDict) -> ListFilters:
    """The filters of a query. What cannot be understood is told and narrows nothing."""
    wrong: dict[str, str] = {}
    told = {name: query.get(name, "").replace("\0", "\ufffd").strip() for name in NAMES}

    def number(name: str) -> float | None:
        if told[name] and not NUMBER.fullmatch(told[name]):
            wrong[name] = f"“{LABELS[name]}” must be a number."
        return None if not told[name] or name in wrong else float(told[name])

    def moment(name: str) -> datetime | None:
        found = _in_calendar(told[name])
        if told[name] and found is None:
            wrong[name] = f"“{LABELS[name]}” isn’t a valid time. Try 2026-11-20T12:00 or 2h."
        return found

    if told["status"] and told["status"] not in Status.values:
        wrong["status"] = "“Status” must be one of " + ", ".join(Status.values) + "."
    key, tokens = number("key"), number("tokens")
    return ListFilters(
        project=told["project"],
        status="" if "status" in wrong else told["status"],
        model=told["model"],
        key=None if key is None else int(key),
        tool=told["tool"],
        since=moment("since"),
        until=moment("until"),
        text=told["q"],
        metadata=_pairs(told["meta"], wrong),
        seconds=number("seconds"),
        tokens=None if tokens is None else int(tokens),
        wrong=wrong,
    )


# The names of the parameters, and how the page calls them.
LABELS = {
    "q": "Search",
    "status": "Status",
    "model": "Model",
    "key": "Key",
    "tool": "Tool",
    "since": "From",
    "until": "To",
    "meta": "Metadata",
    "seconds": "Min duration (s)",
    "tokens": "Min output tokens",
    "project": "Project",
}
NAMES = tuple(LABELS)
# Those that the page always shows. The others are below “More filters”.
ALWAYS_SHOWN = frozenset({"q", "status", "model"})


def _pairs(text: str, wrong: dict[str, str]) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part.strip()]
    if not all(sep and name.strip() for name, sep, _ in pairs):
        wrong["meta"] = "“Metadata” must be key=value, with commas between several."
        return {}
    return {name.strip(): value.strip() for name, _, value in pairs}


def _in_calendar(text: str) -> datetime | None:
    """Read a time that has room around it: the calendar of Python and Postgres ends with the year 9999."""
    try:
        found = _moment(text)
        if found is not None:
            found = found.astimezone(UTC)
            _ = found - ROUND, found + ROUND
    except OverflowError:
        return None
    return found


def _moment(text: str) -> datetime | None:
    """A time, in the time zone of the pages unless it names another, or so long ago."""
    try:
        past = parse_duration(text) if text else None
    except ValueError:
        past = None
    if past is not None:
        return timezone.now() - past
    try:
        found = parse_datetime(text)
    except ValueError:
        return None
    return found if found is None or found.tzinfo else found.replace(tzinfo=timezone.get_current_timezone())
