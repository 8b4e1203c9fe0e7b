"""Admin page of uploaded files, which can be deleted together with the bytes in the storage."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from responses_app.admin.registrations import ReadOnlyAdmin
from responses_app.models import File
from responses_app.store.files import files


@admin.register(File)
class FileAdmin(ReadOnlyAdmin):
    """Uploaded files, newest first."""

    list_display = ("uid", "filename", "project", "purpose", "bytes", "created_at", "expires_at")
    list_filter = ("purpose", "created_at", "project")
    search_fields = ("uid__startswith", "filename__startswith")
    search_help_text = "The beginning of an ID or of a name."
    fields = (
        ("uid", "project"),
        ("filename", "purpose"),
        ("bytes", "sha256"),
        ("created_at", "expires_at"),
        ("status", "status_details"),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow users with the permission of Django to delete files."""
        del obj
        return request.user.has_perm("responses_app.delete_file")

    def delete_model(self, request: HttpRequest, obj: File) -> None:
        """Delete a file: the row and the bytes."""
        del request
        files.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[File]) -> None:
        """Delete the selected files."""
        del request
        for row in queryset:
            files.delete(row)
