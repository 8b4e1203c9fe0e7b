"""Page for an exception of a view: 503 while the database does not answer or its disk is full, else 500."""

from __future__ import annotations

import sys
from http import HTTPStatus
from typing import Final

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.template import loader
from django.utils.log import log_response
from django.views import csrf, defaults

from responses_app.errors import NotFound
from responses_app.observability.records import current_request
from responses_app.store.storage_report.storage_state import is_disk_full

RETRY_AFTER_S: Final = 10


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """Return the page for a form from elsewhere, or an API error for a client whose base URL lacks the `/v1`."""
    if request.path.rstrip("/") != "/responses":
        return csrf.csrf_failure(request, reason)
    message = (
        "Invalid URL (POST /responses). The API is below '/v1': '/v1/responses'. Add '/v1' to the base URL of your client."
    )
    return JsonResponse(NotFound(message).body(), status=HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the page for the exception that is handled now. It has no user, and asks no database."""
    error = sys.exc_info()[1]
    if not isinstance(error, OperationalError | InterfaceError):
        return defaults.server_error(request)
    page = loader.get_template("503.html").render({"is_full": is_disk_full(error)})
    response = HttpResponse(page, status=503, headers={"Retry-After": str(RETRY_AFTER_S)})
    record = current_request.get()
    # A line in place of the traceback that Django logs for a response that is not logged.
    log_response(
        "%s database: %s", record.request_id if record else "", " ".join(str(error).split()), response=response, request=request
    )
    return response
