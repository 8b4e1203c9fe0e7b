"""Actions on the responses that are checked in the list: compare, export, cancel and delete."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from responses_app.access.permissions import visible_responses
from responses_app.errors import ApiError
from responses_app.models import Response, Role
from responses_app.runs import manager
from responses_app.store import audit_log
from responses_app.store.content.erasure import erase_rows
from responses_app.store.log import reader
from responses_app.store.paging import batches
from responses_app.web.private import private
from responses_app.web.responses.numbers import plural
from responses_app.web.responses.rows import rows as list_rows
from responses_app.web.roles import check_role
from responses_app.wire.event_stream import partial_snapshot

# A page of the list has fewer rows.
MAX_SELECTED = 100


@private("POST")
async def act(request: HttpRequest) -> HttpResponseBase:
    """Handle POST /responses/selection: `action` for the responses with the ids `uid`. A deletion is confirmed on a page of its own."""
    rows = await sync_to_async(_selected)(request)
    if request.POST.get("action") in {"cancel", "delete"}:
        await sync_to_async(_check_members)(request, rows)
    match request.POST.get("action"):
        case "compare" if len(rows) > 1:
            query = "&".join(f"column={row.uid}" for row in rows[1:4])
            return redirect(f"{reverse('response-rerun', args=(rows[0].uid,))}?{query}")
        case "export" if rows:
            await sync_to_async(_record)(request, "response.export", rows)
            response = StreamingHttpResponse(_lines(rows), content_type="application/x-ndjson; charset=utf-8")
            response["Content-Disposition"] = 'attachment; filename="responses.jsonl"'
            return response
        case "cancel" if rows:
            await _cancel(request, [row for row in rows if row.ended_at is None])
        case "delete" if rows and "confirmed" in request.POST:
            await _delete(request, rows)
        case "delete" if rows:
            context = {"section": "responses", "lines": await sync_to_async(list_rows)(rows), "back": _list_url(request)}
            return await sync_to_async(render)(request, "web/selection_delete.html", context)
        case _:
            await sync_to_async(messages.error)(request, "Check the responses first: two or more to compare.")
    return redirect(_list_url(request))


def _check_members(request: HttpRequest, rows: Sequence[Response]) -> None:
    for project in {row.project for row in rows}:
        check_role(request, project, Role.MEMBER)


def _selected(request: HttpRequest) -> list[Response]:
    """Return the checked responses that the user may see, oldest first."""
    uids = request.POST.getlist("uid")[:MAX_SELECTED]
    rows = visible_responses(request.user).filter(uid__in=[uid.replace("\0", "") for uid in uids])
    return list(rows.defer("history", "metadata").order_by("pk"))


def _record(request: HttpRequest, action: str, rows: Sequence[Response]) -> None:
    for row in rows:
        audit_log.record(audit_log.actor_of(request), action, f"response {row.uid}", row.project)


async def _lines(rows: Sequence[Response]) -> AsyncIterator[bytes]:
    """Yield each response as a line of JSON, a running one with the items that are done so far."""
    async for batch in batches(reader.with_last_event(Response.objects.filter(pk__in=[row.pk for row in rows])).only("pk")):
        for row in batch:
            yield (reader.terminal_snapshot(row) or await partial_snapshot(row)) + b"\n"


async def _cancel(request: HttpRequest, rows: Sequence[Response]) -> bool:
    """Cancel running responses. Return False, with a message, if one cannot be cancelled."""
    try:
        for row in rows:
            await manager.current().cancel(row)
    except ApiError as error:
        await sync_to_async(messages.error)(request, error.message)
        return False
    done = f"Cancelled {plural(len(rows), 'running response')}." if rows else "None of the checked responses is running."
    await sync_to_async(messages.success)(request, done)
    return True


async def _delete(request: HttpRequest, rows: Sequence[Response]) -> None:
    running = [row for row in rows if row.ended_at is None]
    if running and not await _cancel(request, running):
        return
    deleted = await sync_to_async(erase_rows)(rows)
    await sync_to_async(_record)(request, "response.delete", deleted)
    await sync_to_async(messages.success)(request, f"Deleted {plural(len(deleted), 'response')}.")


def _list_url(request: HttpRequest) -> str:
    """Return the address of the list that the form came from."""
    url = request.POST.get("back", "")
    is_list = url.startswith(reverse("responses")) and url_has_allowed_host_and_scheme(url, None)
    return url if is_list else reverse("responses")
