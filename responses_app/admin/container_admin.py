"""Admin pages of containers and their files, which can be deleted together with the bytes in the storage."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from responses_app.admin.registrations import ReadOnlyAdmin
from responses_app.models import Container, ContainerFile
from responses_app.store.files import container_files
from responses_app.tools.code_interpreter import sandboxes


@admin.register(Container)
class ContainerAdmin(ReadOnlyAdmin):
    """Containers, newest first."""

    list_display = ("uid", "name", "project", "memory_limit", "created_at", "last_active_at")
    list_filter = ("memory_limit", "created_at", "project")
    search_fields = ("uid__startswith", "name__startswith")
    search_help_text = "The beginning of an ID or of a name."
    fields = (("uid", "project"), ("name", "memory_limit"), ("created_at", "last_active_at"), "expires_after_minutes")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow users with the permission of Django to delete containers."""
        del obj
        return request.user.has_perm("responses_app.delete_container")

    def delete_model(self, request: HttpRequest, obj: Container) -> None:
        """Delete a container with its files, and end its code."""
        del request
        async_to_sync(sandboxes.end_container)(obj)
        container_files.delete_container(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Container]) -> None:
        """Delete the selected containers."""
        for row in queryset:
            self.delete_model(request, row)


@admin.register(ContainerFile)
class ContainerFileAdmin(ReadOnlyAdmin):
    """Files of containers, newest first."""

    list_display = ("uid", "path", "container", "bytes", "source", "created_at")
    list_filter = ("source", "created_at")
    search_fields = ("uid__startswith", "container__uid__startswith")
    search_help_text = "The beginning of the ID of a file or of a container."
    fields = (("uid", "container"), ("path", "bytes"), ("source", "created_at"))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow users with the permission of Django to delete files."""
        del obj
        return request.user.has_perm("responses_app.delete_containerfile")

    def delete_model(self, request: HttpRequest, obj: ContainerFile) -> None:
        """Delete a file: the row and the bytes."""
        del request
        container_files.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ContainerFile]) -> None:
        """Delete the selected files."""
        for row in queryset:
            self.delete_model(request, row)
