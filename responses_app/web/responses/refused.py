"""Rows of refused requests in the response list, newest first; those without a valid key are for staff alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet
from django.utils import timezone

from responses_app.access.permissions import restricted_to
from responses_app.models import RefusedRequest
from responses_app.utils.user_model import User
from responses_app.web.responses.filters import ListFilters
from responses_app.web.responses.rows import ResponseRow

PAGE_SIZE: Final = 50
LATELY: Final = timedelta(hours=1)
MAX_LATELY: Final = 1_000
# Rows beside the responses of a page, and newest rows that a search for a text reads for these.
MAX_BESIDE: Final = 25
MAX_SEARCHED_BESIDE: Final = 2_000


@dataclass(frozen=True, slots=True)
class RefusedPage:
    """Page of refused requests; `older` is the key for the link to the next page."""

    rows: Sequence[RefusedRequest]
    newer: int | None
    older: int | None


def visible_refusals(user: AbstractBaseUser | AnonymousUser) -> QuerySet[RefusedRequest]:
    """Return the refused requests that a user may see: those of the user's projects, and for staff those without a valid key."""
    is_staff = isinstance(user, User) and user.is_active and user.is_staff
    projects = restricted_to(user)
    rows = RefusedRequest.objects.select_related("key")
    if projects is not None:
        rows = rows.filter(project__in=[*projects, ""])
    return rows if is_staff else rows.exclude(project="")


def refused_page(user: AbstractBaseUser | AnonymousUser, selected: ListFilters, after: int | None) -> RefusedPage:
    """Return the page behind the key `after`."""
    rows = matching_refusals(user, selected)
    if after is not None:
        rows = rows.filter(pk__lt=after)
    page = list(rows.order_by("-pk")[: PAGE_SIZE + 1])
    shown = page[:PAGE_SIZE]
    newer = shown[0].pk if shown and after is not None else None
    return RefusedPage(shown, newer, shown[-1].pk if len(page) > PAGE_SIZE else None)


def refused_beside(
    user: AbstractBaseUser | AnonymousUser, selected: ListFilters, since: datetime | None, until: datetime | None
) -> list[RefusedRequest]:
    """Return the newest refused requests from `since` to before `until`, at most `MAX_BESIDE` and one; none if the filters exclude them."""
    if not selected.allows_refused:
        return []
    rows = visible_refusals(user).order_by("-created_at")
    if since is not None:
        rows = rows.filter(created_at__gte=since)
    if until is not None:
        rows = rows.filter(created_at__lt=until)
    if selected.text:
        rows = rows.filter(pk__in=rows.values("pk")[:MAX_SEARCHED_BESIDE])
    return list(_matching(rows, selected)[: MAX_BESIDE + 1])


def in_time_order(lines: Sequence[ResponseRow], refused: Sequence[RefusedRequest]) -> Iterator[ResponseRow | RefusedRequest]:
    """Yield rows of responses, newest first, with each refused request above the first older response."""
    waiting = list(reversed(refused))
    for line in lines:
        while waiting and waiting[-1].created_at >= line.response.created_at:
            yield waiting.pop()
        yield line
    yield from reversed(waiting)


def matching_refusals(user: AbstractBaseUser | AnonymousUser, selected: ListFilters) -> QuerySet[RefusedRequest]:
    """Return the refused requests of the filters. Of the filters those of project, key, time and text count."""
    return _matching(visible_refusals(user), selected)


def _matching(rows: QuerySet[RefusedRequest], selected: ListFilters) -> QuerySet[RefusedRequest]:
    if selected.project:
        rows = rows.filter(project=selected.project)
    if selected.key:
        rows = rows.filter(key_id=selected.key)
    if selected.since is not None:
        rows = rows.filter(created_at__gte=selected.since)
    if selected.until is not None:
        rows = rows.filter(created_at__lt=selected.until)
    if selected.text:
        text = selected.text
        rows = rows.filter(
            Q(message__icontains=text)
            | Q(code=text)
            | Q(request_id__startswith=text)
            | Q(path__icontains=text)
            | Q(address=text)
        )
    return rows


def refused_lately(user: AbstractBaseUser | AnonymousUser) -> int:
    """Return the number of requests that were refused in the last hour, at most `MAX_LATELY` rows counted."""
    counts = visible_refusals(user).filter(created_at__gte=timezone.now() - LATELY).order_by().values_list("count", flat=True)
    return sum(counts[:MAX_LATELY])
