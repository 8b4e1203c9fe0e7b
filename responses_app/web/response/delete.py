"""Cancel and delete a response through the code of the API, with a confirmation page."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from responses_app.errors import ApiError
from responses_app.models import Item, Response
from responses_app.runs import manager
from responses_app.store import audit_log
from responses_app.store.content.deletion import erase, orphaned_items
from responses_app.web.private import private
from responses_app.web.response.detail import get_response, render_page


@private("GET", "POST")
async def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Render the confirmation page at GET /responses/ID/delete, delete the response at POST."""
    row = await sync_to_async(get_response)(request, uid)
    if request.method == "GET":
        return await sync_to_async(_confirmation)(request, row)
    if await cancel_running(request, row) and await sync_to_async(_erase)(request, row):
        await sync_to_async(messages.success)(request, f"Deleted {row.uid}.")
        return redirect("responses")
    return redirect("response", row.uid)


@private("POST")
async def cancel(request: HttpRequest, uid: str) -> HttpResponse:
    """Cancel the response at POST /responses/ID/cancel."""
    row = await sync_to_async(get_response)(request, uid)
    await cancel_running(request, row)
    return redirect("response", row.uid)


async def cancel_running(request: HttpRequest, row: Response) -> bool:
    """Cancel a response. A failure becomes a message on the next page, and the result False."""
    try:
        await manager.current().cancel(row)
    except ApiError as error:
        await sync_to_async(messages.error)(request, error.message)
        return False
    return True


def _erase(request: HttpRequest, row: Response) -> bool:
    """Delete the response, and record this in the audit log. Return whether the response existed."""
    erased = erase(row.project, row.uid)
    if erased:
        audit_log.record(audit_log.actor_of(request), "response.delete", f"response {row.uid}", row.project)
    return bool(erased)


def _confirmation(request: HttpRequest, row: Response) -> HttpResponse:
    item_count = Item.objects.filter(response=row).count()
    orphaned = orphaned_items(row)
    context: dict[str, Any] = {
        "orphaned": len(orphaned),
        "shared": item_count - Item.objects.filter(response=row, pk__in=orphaned).count(),
        "children": list(Response.objects.filter(project=row.project, previous_uid=row.uid).values_list("uid", flat=True)[:20]),
    }
    return render_page(request, row, "", "web/delete.html", **context)
