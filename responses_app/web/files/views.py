"""File pages: list, download and delete the uploaded files of the user's projects."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from responses_app.access.permissions import projects
from responses_app.models import File, Role
from responses_app.store import audit_log
from responses_app.store.db import released_connection
from responses_app.store.files import files, storage_calls
from responses_app.web.files.lists import newest_page, row_of_user
from responses_app.web.private import private
from responses_app.wire.file_download import download_response

PAGE_SIZE = 100


@private("GET", "HEAD")
def index(request: HttpRequest) -> HttpResponse:
    """Render GET /files: the newest files first. `after` is the file before the page."""
    page, is_first = newest_page(request, files.unexpired(timezone.now()), PAGE_SIZE)
    context = {
        "section": "files",
        "files": page.rows,
        "next": page.rows[-1].uid if page.more else None,
        "is_first": is_first,
        "projects": projects(request.user, Role.MEMBER),
    }
    return render(request, "web/files.html", context)


@login_required
@require_safe
async def download(request: HttpRequest, uid: str) -> HttpResponseBase:
    """Send the bytes of a file at GET /files/ID/content."""
    row = await sync_to_async(_file)(request, uid)
    try:
        return await download_response(row.storage_name, row.filename, row.bytes)
    except FileNotFoundError:
        raise Http404("The storage has no such file.") from None


@private("GET", "HEAD", "POST")
def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Show a confirmation page at GET /files/ID/delete, and delete the file at POST."""
    row = _file(request, uid)
    if request.method != "POST":
        return render(request, "web/file_delete.html", {"section": "files", "file": row})
    with storage_calls.slow_calls_in(released_connection):
        files.delete(row)
    audit_log.record_on_page(request, "file.delete", f"file {row.uid}", row.project)
    messages.success(request, "The file was deleted.")
    return redirect("files")


def _file(request: HttpRequest, uid: str) -> File:
    return row_of_user(request, files.unexpired(timezone.now()), uid)
