"""Pages of errors: 403 and 404; 503 while the database or the storage of files does not answer or is full, else 500; and 405."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseServerError, JsonResponse
from django.http.response import HttpResponseBase
from django.template import loader
from django.utils.cache import add_never_cache_headers
from django.utils.deprecation import MiddlewareMixin
from django.utils.log import log_response
from django.views import defaults

from responses_app.observability.records import current_request
from responses_app.store.db import await_connection, release_connection
from responses_app.store.files.storage import StorageUnavailable
from responses_app.store.storage_report.storage_state import is_disk_full
from responses_app.web.delivery.middleware import response_middleware

RETRY_AFTER_S: Final = 10
NO_FILES: Final = "The files can’t be reached"
DISK_FULL: Final = "The disk is full"
NO_DATABASE: Final = "The database doesn’t answer"
REMEDY_OF_GET: Final = "This page loads by itself when the answer comes."
REMEDY_OF_POST: Final = "The form may not have been stored. Go back in a moment, and send it again if it was not."
# A run waits longer for a connection than a person for a page.
PAGE_WAIT_S: Final = 5.0


class DatabaseWait(MiddlewareMixin):
    """Middleware that answers 503 soon while the database is away, except to visitors without a session."""

    def process_request(self, request: HttpRequest) -> None:
        """Wait for a connection, which the session needs first."""
        if request.COOKIES:
            await_connection(PAGE_WAIT_S)


def _with_page(response: HttpResponseBase) -> HttpResponseBase:
    """Add a page to a 405 without content, for which browsers show an error."""
    if isinstance(response, HttpResponseNotAllowed) and not response.content:
        response.content = loader.get_template("405.html").render()
    return response


not_allowed_middleware = response_middleware(_with_page)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page of a 403."""
    return _with_connection_returned(defaults.permission_denied, request, exception)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page of a 404."""
    return _with_connection_returned(defaults.page_not_found, request, exception)


def _with_connection_returned(
    make: Callable[[HttpRequest, Exception], HttpResponse], request: HttpRequest, exception: Exception
) -> HttpResponse:
    """Make a page that asks the database. For async views this is in a thread in which Django ends no request.

    The page names the user, so that nothing may store it.
    """
    try:
        response = make(request, exception)
        add_never_cache_headers(response)
        return response
    finally:
        release_connection()


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the page for the exception that is handled now, or an error object to a script. It has no user, and asks no database."""
    error = sys.exc_info()[1]
    record = current_request.get()
    request_id = record.request_id if record else ""
    if not isinstance(error, OperationalError | InterfaceError | StorageUnavailable):
        return HttpResponseServerError(loader.get_template("500.html").render({"request_id": request_id}))
    no_files = isinstance(error, StorageUnavailable)
    # The script of the page asks for the same address again. The form of a POST would be lost.
    waits = request.method in {"GET", "HEAD"}
    is_full = not no_files and is_disk_full(error)
    heading = NO_FILES if no_files else DISK_FULL if is_full else NO_DATABASE
    response: HttpResponse = JsonResponse({"error": {"message": f"{heading}."}})
    if request.headers.get("Accept") != "application/json":
        context = {"heading": heading, "no_files": no_files, "is_full": is_full, "waits": waits}
        remedy = REMEDY_OF_GET if waits else REMEDY_OF_POST
        response = HttpResponse(loader.get_template("503.html").render({**context, "remedy": remedy}))
    response.status_code = 503
    response.headers["Retry-After"] = str(RETRY_AFTER_S)
    # A line in place of the traceback that Django logs for a response that is not logged.
    log_response(
        "%s %s: %s",
        request_id,
        "storage of files" if no_files else "database",
        " ".join(str(error).split()),
        response=response,
        request=request,
    )
    return response
