"""Container pages: list the containers of the user's projects with their files, download files, delete containers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from responses_app.access.permissions import visible_responses
from responses_app.models import Container, ContainerFile, Response
from responses_app.store import audit_log
from responses_app.store.db import released_connection
from responses_app.store.files import container_files, containers, storage_calls
from responses_app.tools import sandbox_access
from responses_app.tools.code_interpreter import sandboxes
from responses_app.web.files.lists import newest_page, row_of_user
from responses_app.web.private import private
from responses_app.web.responses.rows import ResponseRow, rows
from responses_app.wire.file_download import download_response

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class ListedContainer:
    """Container in the list. `maker` is the response that created an automatic container, None if deleted or not visible."""

    row: Container
    is_expired: bool
    maker: ResponseRow | None


@private("GET", "HEAD")
def index(request: HttpRequest) -> HttpResponse:
    """Render GET /containers: the newest containers first. `after` is the container before the page."""
    page, is_first = newest_page(request, Container.objects.prefetch_related("files"), PAGE_SIZE)
    context = {
        "section": "files",
        "containers": _listed(request.user, page.rows),
        "next": page.rows[-1].uid if page.more else None,
        "is_first": is_first,
        "packages_note": sandbox_access.packages_note(),
    }
    return render(request, "web/containers.html", context)


@login_required
@require_safe
async def download(request: HttpRequest, uid: str, file: str) -> HttpResponseBase:
    """Send the bytes of a file at GET /containers/ID/files/FILE/content."""
    row = await sync_to_async(_file)(request, uid, file)
    try:
        return await download_response(row.storage_name, row.filename, row.bytes)
    except FileNotFoundError:
        raise Http404("The storage has no such file.") from None


@private("GET", "HEAD", "POST")
def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Show a confirmation page at GET /containers/ID/delete, and delete the container at POST."""
    row = _container(request, uid)
    if request.method != "POST":
        return render(request, "web/container_delete.html", {"section": "files", "container": row})
    async_to_sync(sandboxes.end_container)(row)
    with storage_calls.slow_calls_in(released_connection):
        container_files.delete_container(row)
    async_to_sync(sandboxes.end_container)(row)
    audit_log.record_on_page(request, "container.delete", f"container {row.uid}", row.project)
    messages.success(request, "The container was deleted.")
    return redirect("containers")


def _listed(user: AbstractBaseUser | AnonymousUser, shown: Sequence[Container]) -> list[ListedContainer]:
    """Return containers with the responses that created them: the id of an automatic container has that of the response."""
    now = timezone.now()
    uids = [_maker_uid(row) for row in shown]
    makers = visible_responses(user).filter(uid__in=uids).defer("history", "metadata")
    by_uid: dict[str, ResponseRow] = {line.response.uid: line for line in rows(list[Response](makers))}
    return [ListedContainer(row, containers.is_expired(row, now), by_uid.get(_maker_uid(row))) for row in shown]


def _maker_uid(row: Container) -> str:
    return f"resp_{row.uid.removeprefix('cntr_')}"


def _container(request: HttpRequest, uid: str) -> Container:
    return row_of_user(request, Container.objects.all(), uid)


def _file(request: HttpRequest, uid: str, file: str) -> ContainerFile:
    if "\0" in file:
        raise Http404
    return get_object_or_404(_container(request, uid).files, uid=file)
