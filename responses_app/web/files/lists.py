"""Rows that a user may see, and pages of these rows: shared by the pages of files, containers and vector stores."""

from __future__ import annotations

from typing import TypeVar

from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest
from django.shortcuts import get_object_or_404

from responses_app.access.permissions import restricted_to
from responses_app.store.paging import RowPage, read_page
from responses_app.web.roles import check_role

# Model with the fields `uid` and `project`.
Row = TypeVar("Row", bound=Model)


def rows_of_user(request: HttpRequest, rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return those of `rows` that belong to the user's projects; all rows for a superuser."""
    projects = restricted_to(request.user)
    return rows if projects is None else rows.filter(project__in=projects)


def row_of_user(request: HttpRequest, rows: QuerySet[Row], uid: str) -> Row:
    """Return the row `uid` of the user. Raises Http404, or PermissionDenied without the role that the page needs."""
    if "\0" in uid:
        raise Http404
    row = get_object_or_404(rows_of_user(request, rows), uid=uid)
    check_role(request, row.project)  # type: ignore[attr-defined]
    return row


def newest_page(request: HttpRequest, rows: QuerySet[Row], size: int) -> tuple[RowPage[Row], bool]:
    """Return the user's rows behind the row that the query parameter `after` names, newest first, and whether the page is the first.

    An unknown row gives the first page.
    """
    rows = rows_of_user(request, rows)
    after = request.GET.get("after", "").replace("\0", "") or None
    page = read_page(rows, limit=size, newest_first=True, after=after)
    is_first = after is None or page is None
    return page or read_page(rows, limit=size, newest_first=True, after=None) or RowPage([], more=False), is_first
