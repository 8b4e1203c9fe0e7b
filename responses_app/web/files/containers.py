"""Container pages: list the containers of the user's projects with their files, download files, delete containers."""

from __future__ import annotations

from asgiref.sync import async_to_sync, sync_to_async
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from responses_app.models import Container, ContainerFile
from responses_app.store.files import container_files, containers
from responses_app.tools import sandbox_access
from responses_app.tools.code_interpreter import sandboxes
from responses_app.web.files.lists import newest_page, row_of_user
from responses_app.wire.file_download import download_response

PAGE_SIZE = 50


@never_cache
@login_required
@require_safe
def index(request: HttpRequest) -> HttpResponse:
    """Render GET /containers: the newest containers first. `after` is the container before the page."""
    page, is_first = newest_page(request, Container.objects.prefetch_related("files"), PAGE_SIZE)
    now = timezone.now()
    context = {
        "section": "files",
        "containers": [(row, containers.is_expired(row, now)) for row in page.rows],
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


@never_cache
@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Show a confirmation page at GET /containers/ID/delete, and delete the container at POST."""
    row = _container(request, uid)
    if request.method != "POST":
        return render(request, "web/container_delete.html", {"section": "files", "container": row})
    async_to_sync(sandboxes.end_container)(row)
    container_files.delete_container(row)
    messages.success(request, "The container was deleted.")
    return redirect("containers")


def _container(request: HttpRequest, uid: str) -> Container:
    return row_of_user(request, Container.objects.all(), uid)


def _file(request: HttpRequest, uid: str, file: str) -> ContainerFile:
    if "\0" in file:
        raise Http404
    return get_object_or_404(_container(request, uid).files, uid=file)
