"""Audit log in the admin, and entries of the audit log for changes in the admin."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Final

from django.apps import apps
from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db.models import Model, QuerySet
from django.http import HttpRequest, StreamingHttpResponse

from responses_app.admin.read_only import PlainTitleAdmin, ReadOnlyAdmin
from responses_app.models import ApiKey, AuditEntry, Membership, Project
from responses_app.store import audit_log
from responses_app.store.paging import batches
from responses_app.utils.csv_cells import csv_cell
from responses_app.utils.user_model import User

NOUNS: Final[dict[type[Model], str]] = {
    ApiKey: "key",
    Membership: "membership",
    Project: "project",
    User: "account",
    Group: "group",
}
CSV_COLUMNS: Final = ("at", "actor_kind", "actor_id", "actor", "address", "action", "object", "project", "outcome")


class Audited(ModelAdmin):  # type: ignore[type-arg]
    """Admin whose additions, changes and deletions are entries of the audit log."""

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record an addition."""
        _record(request, obj, "create")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record a change with the names of the changed fields."""
        changed = message[0].get("changed", {}).get("fields", ()) if isinstance(message, list) and message else ()
        _record(request, obj, "change", changed)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Record deletions."""
        for obj in queryset:
            _record(request, obj, "delete")
        return super().log_deletions(request, queryset)


class AuditedUserAdmin(Audited, PlainTitleAdmin, UserAdmin):  # type: ignore[type-arg]
    """Accounts, with entries in the audit log."""


class AuditedGroupAdmin(Audited, PlainTitleAdmin, GroupAdmin):
    """Groups of Django's permissions, with entries in the audit log."""


# Tables of django-allauth, which has its provider from the settings.
for allauth_model in (*apps.get_app_config("account").get_models(), *apps.get_app_config("socialaccount").get_models()):
    if admin.site.is_registered(allauth_model):
        admin.site.unregister(allauth_model)
for model, page in ((User, AuditedUserAdmin), (Group, AuditedGroupAdmin)):
    # Django registers an account model only if it is its own.
    if admin.site.is_registered(model):
        admin.site.unregister(model)
    admin.site.register(model, page)


@admin.action(description="Export as CSV", permissions=["view"])
def export_csv(entries: ModelAdmin[Any], request: HttpRequest, selected: QuerySet[Any]) -> StreamingHttpResponse:
    """Export the selected entries, oldest first."""
    del entries
    audit_log.record(audit_log.actor_of(request), "export", "audit log")
    response = StreamingHttpResponse(_csv(selected), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="audit.csv"'
    return response


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    """Audit log, newest first, for superusers."""

    list_display = ("at", "actor_kind", "actor", "address", "action", "object", "project", "outcome")
    list_filter = ("at", "action", "outcome", "actor_kind")
    # Each word of a search is a part of one of these: an ID stands behind the kind of its object.
    search_fields = ("actor__contains", "object__contains", "address__contains", "project__contains")
    search_help_text = "Parts of an account, an address, a project or an object, such as “resp_1” or “account ada”."
    actions = (export_csv,)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return True for superusers alone."""
        del obj
        return bool(request.user.is_active and getattr(request.user, "is_superuser", False))

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return True: the permission of the page decides."""
        del request
        return True


async def _csv(entries: QuerySet[AuditEntry]) -> AsyncIterator[bytes]:
    yield _encoded([CSV_COLUMNS])
    async for rows in batches(entries):
        yield _encoded([[row.at.isoformat(), *(csv_cell(getattr(row, name)) for name in CSV_COLUMNS[1:])] for row in rows])


def _encoded(lines: Sequence[Sequence[Any]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def _record(request: HttpRequest, obj: Any, verb: str, fields: Iterable[str] = ()) -> None:
    noun = NOUNS[type(obj)]
    what = f"{noun} {obj}" + (f": {', '.join(fields)}" if fields else "")
    project = obj.name if isinstance(obj, Project) else str(getattr(obj, "project", ""))
    audit_log.record(audit_log.actor_of(request), f"{noun}.{verb}", what, project)
