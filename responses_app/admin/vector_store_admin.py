"""Admin of vector stores and of the files in vector stores: both read-only, with deletion."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from responses_app.admin.registrations import ReadOnlyAdmin
from responses_app.models import VectorStore, VectorStoreFile
from responses_app.store.vector_stores import store_files, stores


@admin.register(VectorStore)
class VectorStoreAdmin(ReadOnlyAdmin):
    """Vector stores, newest first."""

    list_display = ("uid", "name", "project", "created_at", "last_active_at")
    list_filter = ("created_at", "project")
    search_fields = ("uid__startswith", "name__startswith")
    search_help_text = "The beginning of an ID or of a name."
    fields = (
        ("uid", "project"),
        ("name", "text_config"),
        "description",
        ("created_at", "last_active_at", "expires_after_days"),
        "metadata",
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow users with the permission of Django to delete vector stores."""
        del obj
        return request.user.has_perm("responses_app.delete_vectorstore")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return the stores alone: the thousands of chunks need no list and no permission."""
        del request
        return [str(one) for one in objs], {"vector stores": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: VectorStore) -> None:
        """Delete a vector store."""
        del request
        stores.delete(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[VectorStore]) -> None:
        """Delete the selected vector stores."""
        for row in queryset:
            self.delete_model(request, row)


@admin.register(VectorStoreFile)
class VectorStoreFileAdmin(ReadOnlyAdmin):
    """Files in vector stores, newest first, with the state of the ingestion."""

    list_display = ("file", "store", "status", "attempts", "usage_bytes", "error_code", "created_at")
    list_filter = ("status", "error_code", "created_at")
    list_select_related = ("file", "store")
    search_fields = ("file__uid__startswith", "store__uid__startswith")
    search_help_text = "The beginning of the ID of a file or of a vector store."
    fields = (
        ("file", "store", "batch"),
        ("status", "attempts", "due_at"),
        ("error_code", "error_message"),
        ("chunk_tokens", "overlap_tokens", "usage_bytes"),
        ("attributes", "created_at"),
    )

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow users with the permission of Django to remove files from vector stores."""
        del obj
        return request.user.has_perm("responses_app.delete_vectorstorefile")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> tuple[list[str], dict[str, int], set[str], list[str]]:
        """Return the files alone, without their chunks."""
        del request
        return [str(one) for one in objs], {"files in vector stores": len(objs)}, set(), []

    def delete_model(self, request: HttpRequest, obj: VectorStoreFile) -> None:
        """Remove a file from its store."""
        del request
        store_files.remove(obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[VectorStoreFile]) -> None:
        """Remove the selected files."""
        for row in queryset:
            self.delete_model(request, row)
