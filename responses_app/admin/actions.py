"""What the admin does with responses that were chosen: end, delete and export them, through the code that the API uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from responses_app.errors import ApiError
from responses_app.models import Response
from responses_app.runs import manager
from responses_app.store.content.deletion import erase, orphaned_items
from responses_app.store.log import reader


@admin.action(description="Cancel running responses", permissions=["end"])
def cancel(responses: ModelAdmin[Any], request: HttpRequest, chosen: QuerySet[Response]) -> None:
    """End each that has not ended; what it has said is kept."""
    running = list(chosen.filter(ended_at=None))
    ended = sum(_ended(request, row) for row in running)
    messages.success(request, f"Cancelled {ended} of {len(running)} running responses.")
    del responses


@admin.action(description="Delete responses", permissions=["end"])
def delete(responses: ModelAdmin[Any], request: HttpRequest, chosen: QuerySet[Response]) -> HttpResponse | None:
    """Ask first, telling what goes; then delete each, with the items that nothing else needs."""
    rows = list(chosen)
    if "confirmed" not in request.POST:
        context = {
            **responses.admin_site.each_context(request),
            "opts": responses.opts,
            "title": "Delete responses",
            "rows": [(row, reader.last_number(row.pk) + 1, len(orphaned_items(row))) for row in rows],
        }
        return TemplateResponse(request, "admin/responses_app/response/delete.html", context)
    gone = sum(_ended(request, row) and erase(row.project, row.uid) for row in rows)
    messages.success(request, f"Deleted {gone} of {len(rows)} responses.")
    return None


@admin.action(description="Export as JSONL", permissions=["view"])
def export(responses: ModelAdmin[Any], request: HttpRequest, chosen: QuerySet[Response]) -> HttpResponse:
    """The snapshot of each that has ended, a line each, the oldest first."""
    del responses, request
    answer = HttpResponse(b"".join(_lines(chosen)), content_type="application/x-ndjson; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="responses.jsonl"'
    return answer


ACTIONS = (cancel, delete, export)


def _lines(chosen: QuerySet[Response]) -> Iterator[bytes]:
    for row in reader.with_last_event(chosen).order_by("pk"):
        yield (
            reader.terminal_snapshot(row) or orjson.dumps({"id": row.uid, "object": "response", "status": row.status})
        ) + b"\n"


def _ended(request: HttpRequest, row: Response) -> bool:
    try:
        async_to_sync(manager.current().cancel)(row)
    except ApiError as error:
        messages.error(request, f"{row.uid}: {error.message}")
        return False
    return True
