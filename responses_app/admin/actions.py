"""Admin actions on selected responses: cancel, delete, export, through the same code as the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any, Final

import orjson
from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.admin import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse

from responses_app.errors import ApiError
from responses_app.models import Response
from responses_app.store import audit_log
from responses_app.store.content.deletion import orphaned_items
from responses_app.store.content.erasure import erase_rows
from responses_app.store.log import reader
from responses_app.store.paging import batches

# Responses of one deletion. A form has at most 1,000 fields, and the page of a deletion counts the items of each response.
MAX_DELETED: Final = 500


@admin.action(description="Cancel running responses", permissions=["end"])
def cancel(responses: ModelAdmin[Any], request: HttpRequest, selected: QuerySet[Response]) -> None:
    """Cancel the running responses of the selection. Generated output stays stored."""
    running = list(selected.filter(ended_at=None))
    cancelled = sum(_cancel(request, row) for row in running)
    messages.success(request, f"Cancelled {cancelled} of {len(running)} running responses.")
    del responses


@admin.action(description="Delete responses", permissions=["end"])
def delete(responses: ModelAdmin[Any], request: HttpRequest, selected: QuerySet[Response]) -> HttpResponse | None:
    """Delete the selected responses, at most the first `MAX_DELETED`, and unshared items, after a confirmation page."""
    rows = list(selected[:MAX_DELETED])
    if "confirmed" not in request.POST:
        context = {
            **responses.admin_site.each_context(request),
            "opts": responses.opts,
            "title": "Delete responses",
            "more": max(selected.count() - len(rows), 0),
            "rows": [(row, reader.last_number(row.pk) + 1, len(orphaned_items(row))) for row in rows],
        }
        return TemplateResponse(request, "admin/responses_app/response/delete.html", context)
    deleted = erase_rows([row for row in rows if _cancel(request, row)])
    _record(request, "response.delete", deleted)
    messages.success(request, f"Deleted {len(deleted)} of {len(rows)} responses.")
    return None


@admin.action(description="Export as JSONL", permissions=["view"])
def export(responses: ModelAdmin[Any], request: HttpRequest, selected: QuerySet[Response]) -> StreamingHttpResponse:
    """Export the selected responses as JSON lines, oldest first: terminal snapshots, or id and status while running."""
    del responses
    if request.POST.get("select_across") == "1":
        _record_list(request, selected.count())
    else:
        _record(request, "response.export", selected)
    response = StreamingHttpResponse(_lines(selected), content_type="application/x-ndjson; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="responses.jsonl"'
    return response


ACTIONS = (cancel, delete, export)


def _record(request: HttpRequest, action: str, rows: Iterable[Response]) -> None:
    for row in rows:
        audit_log.record(audit_log.actor_of(request), action, f"response {row.uid}", row.project)


def _record_list(request: HttpRequest, count: int) -> None:
    """Record the export of a whole list: the number of responses, and the filters that chose these."""
    chosen = f"{count} responses" + (f" with {request.GET.urlencode()}" if request.GET else "")
    audit_log.record(audit_log.actor_of(request), "response.export", chosen)


async def _lines(selected: QuerySet[Response]) -> AsyncIterator[bytes]:
    async for rows in batches(reader.with_last_event(selected)):
        yield b"".join(map(_line, rows))


def _line(row: Response) -> bytes:
    snapshot = reader.terminal_snapshot(row)
    return (snapshot or orjson.dumps({"id": row.uid, "object": "response", "status": row.status})) + b"\n"


def _cancel(request: HttpRequest, row: Response) -> bool:
    try:
        # Here, as all commands of manage.py load the actions, and few of them load a manager.
        from responses_app.runs import manager

        async_to_sync(manager.current().cancel)(row)
    except ApiError as error:
        messages.error(request, f"{row.uid}: {error.message}")
        return False
    return True
