"""Response list: filters and page position in the URL, pages by primary key, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from urllib.parse import urlencode

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render

from responses_app.access.permissions import projects, restricted_to, visible_responses
from responses_app.models import ApiFormat, ApiKey, Response, SavedView, Status
from responses_app.runs import manager
from responses_app.utils.url_prefix import api_url
from responses_app.utils.user_model import User
from responses_app.web.delivery.replica_pages import reads_replica
from responses_app.web.private import private
from responses_app.web.responses import filters, ids
from responses_app.web.responses.filters import ListFilters
from responses_app.web.responses.histogram import Histogram, histogram
from responses_app.web.responses.numbers import parse_number
from responses_app.web.responses.refused import MAX_BESIDE, in_time_order, refused_beside, refused_lately, refused_page
from responses_app.web.responses.rows import rows

PAGE_SIZE = 50
# Columns that the list does not load: the history of a long chain has thousands of keys.
LARGE_COLUMNS = ("history", "metadata")
PAGE_PARAMETERS = ("after", "before")


@dataclass(frozen=True, slots=True)
class ListPage:
    """Page of the list; `newer` and `older` are the keys for the links to the adjacent pages."""

    responses: list[Response]
    newer: int | None
    older: int | None
    # The first response behind the search window, None if the search is complete.
    floor: Response | None
    histogram: Histogram
    # The page has what was created from `since` to before `until`; None for no limit.
    since: datetime | None = None
    until: datetime | None = None


@private("GET", "HEAD")
@reads_replica
def index(request: HttpRequest) -> HttpResponse:
    """Render GET /responses. A query with empty fields, as forms send, is redirected to the URL without the fields."""
    if not all(value for values in request.GET.lists() for value in values[1]):
        return redirect(f"{request.path}?{_query(request.GET)}".rstrip("?&"))
    selected = filters.parse_filters(request.GET)
    filter_values = filters.given_filters(request.GET)
    own_projects = projects(request.user)
    views, query = list(SavedView.objects.filter(user=cast(User, request.user))), urlencode(filter_values)
    context: dict[str, Any] = {
        "section": "responses",
        "selected": selected,
        "given": filter_values,
        "has_more_filters": bool(set(filter_values) - filters.ALWAYS_SHOWN),
        **_content(request, selected),
        "live": request.GET.get("live") == "1",
        "query": _query(request.GET, *PAGE_PARAMETERS),
        "query_without_times": _query(request.GET, *PAGE_PARAMETERS, "since", "until", "zone"),
        "query_without_live": _query(request.GET, *PAGE_PARAMETERS, "live"),
        "statuses": [(filters.RUNNING, "Queued or in progress"), *Status.choices, (filters.REFUSED, "Refused")],
        "formats": [(name, ApiFormat(value).label) for name, value in filters.API_FORMATS.items()],
        "labels": filters.LABELS,
        "sorts": [(name, label) for name, (_, label) in filters.SORTS.items()],
        "query_without_sort": _query(request.GET, *PAGE_PARAMETERS, "sort"),
        "is_behind": "after" in request.GET,
        "models": sorted(manager.current().served),
        "base_url": api_url(request),
        "keys": ApiKey.objects.filter(project__in=own_projects).order_by("project", "name", "pk"),
        "projects": own_projects,
        "views": views,
        "filter_query": query,
        "view_name": next((view.name for view in views if view.query == query), ""),
    }
    return render(request, "web/responses.html", context)


def _content(request: HttpRequest, selected: ListFilters) -> dict[str, Any]:
    """Return the template variables of the rows: responses or refused requests."""
    after, before = _key(request.GET, "after"), _key(request.GET, "before")
    if selected.status == filters.REFUSED:
        return {"refused": refused_page(request.user, selected, after)}
    page = _page(visible_responses(request.user), restricted_to(request.user), selected, after, before)
    is_latest = after is None and before is None and selected.since is None and selected.until is None
    lately = refused_lately(request.user) if is_latest and not selected.status and not selected.hides_refused else 0
    beside = refused_beside(request.user, selected, page.since, page.until)
    lines = list(in_time_order(rows(page.responses), beside[:MAX_BESIDE]))
    return {"page": page, "rows": lines, "refused_lately": lately, "has_more_refused": len(beside) > MAX_BESIDE}


def _page(
    visible: QuerySet[Response], projects: Sequence[str] | None, selected: ListFilters, after: int | None, before: int | None
) -> ListPage:
    rows = selected.indexed(visible)
    floor = None
    by_id = ids.search_by_id(rows, selected.text)
    if by_id is not None:
        rows, selected = by_id, replace(selected, text="")
    if selected.window is not None:
        # `before` does not bound the search: its link leads back to a page within an earlier window.
        rows, floor = _search(
            rows if after is None or selected.sort else rows.filter(pk__lt=after), projects, selected, selected.window
        )
    # The histogram covers all pages.
    all_pages = rows
    if selected.sort:
        page = list(selected.sorted_rows(rows, after, visible).defer(*LARGE_COLUMNS)[: PAGE_SIZE + 1])
        older = page[PAGE_SIZE - 1].pk if len(page) > PAGE_SIZE else None
        return ListPage(page[:PAGE_SIZE], None, older, floor, histogram(all_pages))
    if after is not None:
        rows = rows.filter(pk__lt=after)
    if before is not None:
        page = list(rows.filter(pk__gt=before).order_by("pk").defer(*LARGE_COLUMNS)[: PAGE_SIZE + 1])
        has_newer, responses = len(page) > PAGE_SIZE, page[:PAGE_SIZE][::-1]
        since, until = _last_time(responses), page[-1].created_at if has_newer else None
        newer = responses[0].pk if has_newer else None
        return ListPage(responses, newer, before + 1, floor, histogram(all_pages), since, until)
    page = list(rows.order_by("-pk").defer(*LARGE_COLUMNS)[: PAGE_SIZE + 1])
    responses = page[:PAGE_SIZE]
    newer = responses[0].pk if responses and after is not None else None
    older = responses[-1].pk if len(page) > PAGE_SIZE else None
    since = _last_time(responses) if older or floor else None
    # The last response of the page before, unless it was deleted.
    following = visible.filter(pk__gte=after).order_by("pk") if after is not None else visible.none()
    until = following.values_list("created_at", flat=True).first()
    return ListPage(responses, newer, older, floor, histogram(all_pages), since, until)


def _last_time(responses: Sequence[Response]) -> datetime | None:
    return responses[-1].created_at if responses else None


def _search(
    rows: QuerySet[Response], projects: Sequence[str] | None, selected: ListFilters, window: int
) -> tuple[QuerySet[Response], Response | None]:
    """Search the newest `window` rows, and with fewer matches than a page all rows. Return the matches and the floor."""
    floor = rows.order_by("-pk").defer(*LARGE_COLUMNS)[window : window + 1].first()
    recent = selected.searched(rows if floor is None else rows.filter(pk__gt=floor.pk))
    if floor is not None and selected.text and len(recent.order_by()[: PAGE_SIZE + 1].values_list("pk")) <= PAGE_SIZE:
        older = selected.search_older(rows, floor, projects)
        if older is not None:
            # Window and index together cover all rows.
            return rows.filter(Q(pk__in=recent.values("pk")) | Q(pk__in=older.values("pk"))), None
    return recent, floor


def _key(query: QueryDict, name: str) -> int | None:
    return parse_number(query.get(name, ""), filters.MAX_BIGINT)


def _query(query: QueryDict, *without: str) -> str:
    """Return the query string without empty parameters and `without`, ready to append more."""
    remaining = QueryDict(mutable=True)
    for name, value in query.items():
        if value and name not in without:
            remaining[name] = str(value)
    text = remaining.urlencode()
    return f"{text}&" if text else ""
