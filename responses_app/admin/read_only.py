"""Admin pages without adding, changing and deleting. No page counts or joins a whole table."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.core.paginator import Page, Paginator
from django.db import connection
from django.db.models import Model, QuerySet
from django.forms import Media
from django.http import HttpRequest, HttpResponse
from django.utils.functional import cached_property
from django.utils.text import capfirst

from responses_app.admin.links import LinksAdmin

MAX_EXACT_COUNT = 10_000
MAX_OFFSET = 200_000
LIST_MEDIA = Media(js=("admin/js/core.js", "admin/js/actions.js"))
# The header of the pages leads to every part, so that no side bar moves the page when its script opens it.
admin.site.enable_nav_sidebar = False
SEARCH_HELP = "An ID, or the beginning of one."
READ_ONLY: Final = "Nobody can add, change or delete {} on this page: the log stays as it was written."


class CappedPaginator(Paginator):  # type: ignore[type-arg]
    """Paginator with an exact count up to a limit and an estimate beyond: count(*) over millions of rows takes seconds."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows: exact up to MAX_EXACT_COUNT, then estimated from the planner's statistics."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        exact = rows.order_by()[: MAX_EXACT_COUNT + 1].count()
        return exact if exact <= MAX_EXACT_COUNT or rows.query.where else max(exact, _estimate(rows.model))

    @cached_property
    def num_pages(self) -> int:
        """Return the number of pages, limited by MAX_OFFSET, since Postgres would skip millions of rows. Search finds older rows."""
        pages: int = super().num_pages
        return min(pages, MAX_OFFSET // self.per_page)

    def page(self, number: Any) -> Page[Any]:
        """Return a page. Its keys are read by the index alone: the rows that are skipped are neither read nor joined."""
        page: Page[Any] = super().page(number)
        skipping: QuerySet[Any] = page.object_list  # type: ignore[assignment]
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        page.object_list = rows.filter(pk__in=skipping.values("pk"))
        return page


def _estimate(model: type[Model]) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [model._meta.db_table])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


class PlainTitleAdmin(LinksAdmin):
    """Admin with the plural name of the model as the title of the list."""

    # Sentence below an empty list.
    empty_help = ""
    # Counts beside the filters would read whole tables.
    show_facets = admin.ShowFacets.NEVER

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Show the list, titled `Responses` and not `Select response to view`, without jQuery, which no list uses."""
        title = capfirst(str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, "media": LIST_MEDIA, **(extra_context or {})})


class ReadOnlyAdmin(PlainTitleAdmin):
    """Admin without adding, changing and deleting. `read_only` is the reason."""

    read_only: str = READ_ONLY

    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 50
    # Newest first, by primary key. A different order would sort the whole table.
    sortable_by = ()
    search_help_text = SEARCH_HELP

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny."""
        del request, obj
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny."""
        del request, obj
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Deny: the deletion of Django would also delete items that later responses need."""
        del request, obj
        return False

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Deny, with the reason."""
        del form_url, extra_context
        raise self._refusal(request)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the row. Deny a change, with the reason."""
        if request.method == "POST":
            raise self._refusal(request)
        return super().change_view(request, object_id, form_url, extra_context)

    def delete_view(self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Deny, with the reason."""
        del object_id, extra_context
        raise self._refusal(request)

    def _refusal(self, request: HttpRequest) -> PermissionDenied:
        """Return the error of a change: the reason for an account that sees the page, and else that of Django."""
        if not self.has_view_permission(request):
            return PermissionDenied()
        return PermissionDenied(self.read_only.format(self.opts.verbose_name_plural))
