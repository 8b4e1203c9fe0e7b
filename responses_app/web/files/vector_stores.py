"""Vector store pages: list the vector stores of the user's projects, show the files with their progress, delete and remove."""

from __future__ import annotations

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from responses_app.access.permissions import projects
from responses_app.models import File, Role, VectorStore, VectorStoreFile
from responses_app.store import audit_log
from responses_app.store.files import files
from responses_app.store.vector_stores import store_files, stores
from responses_app.web.files.lists import newest_page, row_of_user
from responses_app.web.private import private

PAGE_SIZE = 50
# Files that the form offers to add.
MAX_CANDIDATES = 100
# Seconds after which the page of a store is loaded again while files are in progress.
REFRESH_S = 5
STATUS_WORDS = {"in_progress": "In progress", "completed": "Completed", "expired": "Expired"}


@private("GET", "HEAD")
def index(request: HttpRequest) -> HttpResponse:
    """Render GET /vector-stores: the newest vector stores first. `after` is the store before the page."""
    page, is_first = newest_page(request, VectorStore.objects.all(), PAGE_SIZE)
    counts, now = stores.count_files(page.rows), timezone.now()
    context = {
        "section": "files",
        "stores": [(row, counts[row.pk], STATUS_WORDS[stores.status_of(row, counts[row.pk], now)]) for row in page.rows],
        "next": page.rows[-1].uid if page.more else None,
        "is_first": is_first,
        "projects": projects(request.user, Role.MEMBER),
    }
    return render(request, "web/vector_stores.html", context)


@private("GET", "HEAD")
def show(request: HttpRequest, uid: str) -> HttpResponse:
    """Render GET /vector-stores/ID: the files of the store, the newest first, and their status."""
    store, after = _store(request, uid), request.GET.get("after", "").replace("\0", "")
    first = VectorStoreFile.objects.filter(store=store, file__uid=after).exists()
    page = store_files.page(store, status=None, limit=PAGE_SIZE, newest_first=True, after=after if first else None, before=None)
    rows = list(page.rows) if page is not None else []
    counts, now = stores.count_files([store])[store.pk], timezone.now()
    context = {
        "section": "files",
        "store": store,
        "counts": counts,
        "status": STATUS_WORDS[stores.status_of(store, counts, now)],
        "expires_at": stores.expires_at(store),
        "files": rows,
        "next": rows[-1].file.uid if page is not None and page.more else None,
        "is_first": not first,
        "candidates": _candidates(store),
    }
    response = render(request, "web/vector_store.html", context)
    if counts.by_status.get("in_progress"):
        response["Refresh"] = str(REFRESH_S)
    return response


@private("GET", "HEAD", "POST")
def delete(request: HttpRequest, uid: str) -> HttpResponse:
    """Show a confirmation page at GET /vector-stores/ID/delete, and delete the vector store at POST."""
    store = _store(request, uid)
    if request.method != "POST":
        return render(request, "web/vector_store_delete.html", {"section": "files", "store": store})
    stores.delete(store)
    audit_log.record_on_page(request, "vector-store.delete", f"vector store {store.uid}", store.project)
    messages.success(request, "The vector store was deleted.")
    return redirect("vector-stores")


@private("GET", "HEAD", "POST")
def remove_file(request: HttpRequest, uid: str, file: str) -> HttpResponse:
    """Show a confirmation page at GET /vector-stores/ID/files/FILE/remove, and remove the file from the store at POST."""
    store = _store(request, uid)
    row = None if "\0" in file else store_files.find(store, file)
    if row is None:
        raise Http404
    if request.method != "POST":
        return render(request, "web/vector_store_delete.html", {"section": "files", "store": store, "row": row})
    store_files.remove(row)
    what = f"file {file} of vector store {store.uid}"
    audit_log.record_on_page(request, "vector-store.change", what, store.project)
    messages.success(request, "The file was removed from the vector store.")
    return redirect("vector-store", store.uid)


def _candidates(store: VectorStore) -> QuerySet[File]:
    """Return the newest files of the project that are not in the store."""
    present = VectorStoreFile.objects.filter(store=store).values("file")
    return files.visible(store.project, timezone.now()).exclude(pk__in=present).order_by("-pk")[:MAX_CANDIDATES]


def _store(request: HttpRequest, uid: str) -> VectorStore:
    return row_of_user(request, VectorStore.objects.all(), uid)
