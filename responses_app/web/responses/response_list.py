"""The response list: filters and place in the URL, pages by primary key, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from responses_app.access.permissions import projects, restricted_to, visible_responses
from responses_app.models import ApiKey, Response, Status
from responses_app.runs import manager
from responses_app.web.responses import filters, ids
from responses_app.web.responses.filters import ListFilters
from responses_app.web.responses.histogram import Histogram, histogram
from responses_app.web.responses.numbers import read_number
from responses_app.web.responses.rows import rows

SHOWN = 50
# Columns that no list shows: a chain of a thousand turns has thousands of keys.
WIDE = ("history", "metadata")
PLACE = ("after", "before")


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of the list: its responses, what lies around them, and how far was looked."""

    found: list[Response]
    newer: int | None
    older: int | None
    # The last response that was looked at, if more lie behind it that were not.
    floor: Response | None
    histogram: Histogram


@never_cache
@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """GET /responses. A form sends its empty fields too; they are left out of the address."""
    if not all(value for values in request.GET.lists() for value in values[1]):
        return redirect(f"{request.path}?{_query(request.GET)}".rstrip("?&"))
    wanted = filters.read(request.GET)
    shelf = _shelf(
        visible_responses(request.user),
        restricted_to(request.user),
        wanted,
        _place(request.GET, "after"),
        _place(request.GET, "before"),
    )
    given = {name: request.GET[name] for name in filters.NAMES if request.GET.get(name)}
    mine = projects(request.user)
    context: dict[str, Any] = {
        "section": "responses",
        "wanted": wanted,
        "given": given,
        "narrowed": bool(set(given) - filters.ALWAYS_SHOWN),
        "shelf": shelf,
        "rows": rows(shelf.found),
        "live": request.GET.get("live") == "1",
        "query": _query(request.GET, *PLACE),
        "timeless": _query(request.GET, *PLACE, "since", "until"),
        "lifeless": _query(request.GET, *PLACE, "live"),
        "statuses": Status.choices,
        "labels": filters.LABELS,
        "models": sorted(manager.current().served),
        "base_url": request.build_absolute_uri("/v1"),
        "keys": ApiKey.objects.filter(project__in=mine).order_by("project", "name", "pk"),
        "projects": mine,
    }
    return render(request, "web/responses.html", context)


def _shelf(
    mine: QuerySet[Response], projects: Sequence[str] | None, wanted: ListFilters, after: int | None, before: int | None
) -> ListPage:
    narrowed = wanted.indexed(mine)
    floor = None
    by_id = ids.named(narrowed, wanted.text)
    if by_id is not None:
        narrowed, wanted = by_id, replace(wanted, text="")
    if wanted.window is not None:
        looked = narrowed if after is None else narrowed.filter(pk__lt=after)
        # `before` has no window: it goes back to where somebody has come from.
        floor = looked.order_by("-pk").defer(*WIDE)[wanted.window : wanted.window + 1].first()
        bounded = looked if floor is None else looked.filter(pk__gt=floor.pk)
        near = wanted.searched(bounded)
        if floor is not None and wanted.text and len(near.order_by()[: SHOWN + 1].values_list("pk")) <= SHOWN:
            beyond = wanted.beyond(looked, floor, projects)
            if beyond is not None:
                # All of it was looked through, in one way or the other.
                near, floor = looked.filter(Q(pk__in=near.values("pk")) | Q(pk__in=beyond.values("pk"))), None
        narrowed = near
    # The histogram does not move with the page.
    counted = narrowed
    if after is not None:
        narrowed = narrowed.filter(pk__lt=after)
    if before is not None:
        page = list(narrowed.filter(pk__gt=before).order_by("pk").defer(*WIDE)[: SHOWN + 1])
        more, found = len(page) > SHOWN, page[:SHOWN][::-1]
        return ListPage(found, found[0].pk if more else None, before + 1, floor, histogram(counted))
    page = list(narrowed.order_by("-pk").defer(*WIDE)[: SHOWN + 1])
    found = page[:SHOWN]
    newer = found[0].pk if found and after is not None else None
    older = found[-1].pk if len(page) > SHOWN else None
    return ListPage(found, newer, older, floor, histogram(counted))


def _place(query: QueryDict, name: str) -> int | None:
    return read_number(query.get(name, ""), filters.BIGGEST)


def _query(query: QueryDict, *without: str) -> str:
    """The query again, without some of it and without what is empty; to be followed by more."""
    kept = QueryDict(mutable=True)
    for name, value in query.items():
        if value and name not in without:
            kept[name] = str(value)
    text = kept.urlencode()
    return f"{text}&" if text else ""
