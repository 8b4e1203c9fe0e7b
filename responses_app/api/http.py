"""Decorator of all API views: methods, authentication, headers, and error responses."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from responses_app.access.api_keys import authenticate
from responses_app.api_formats.errors import MESSAGES, error_body
from responses_app.api_formats.messages.message import VERSION_HEADER
from responses_app.api_formats.messages.rate_limits import rate_limit_headers
from responses_app.errors import (
    ApiError,
    InvalidRequest,
    MethodNotAllowed,
    RateLimited,
)
from responses_app.models import ApiKey
from responses_app.observability.records import note
from responses_app.runs.ids import new_id
from responses_app.store import audit_log, refused_requests
from responses_app.store.refused_requests import RequestPlace
from responses_app.utils.shares import ProjectShares, ShareExceeded, shares_of
from responses_app.utils.url_prefix import local_path
from responses_app.wire.api_errors import to_api_error

logger = logging.getLogger("responses.api")

Handler = Callable[..., Awaitable[HttpResponseBase]]
JSON = "application/json"
SHARE_IS_FULL = (
    "Too many requests of this project to lists, files, containers or vector stores wait already. Try again in a moment."
)
# Requests of a project that wait for a place.
MAX_WAITING = 256
# `request.META` keys: the request id, the API key, and whether a stored response shows how the request ended.
REQUEST_ID = "responses.request_id"
API_KEY = "responses.api_key"
HAS_RESPONSE = "responses.has_response"


def json_response(body: bytes | dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> HttpResponse:
    """Return a JSON response."""
    data = body if isinstance(body, bytes) else orjson.dumps(body)
    response = HttpResponse(data, status=status, content_type=JSON, headers=headers)
    # The log of requests has a line with the id for each; Django would log errors again.
    response._has_been_logged = True  # type: ignore[attr-defined]
    return response


def api_view(*, public: bool = False, **handlers: Handler) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Return a view that calls `handlers[METHOD](request, key, **path)` and converts every exception to an API error.

    A public view needs no key and calls `handlers[METHOD](request, **path)`.
    """

    async def view(request: HttpRequest, **path: str) -> HttpResponseBase:
        began, request_id = time.monotonic(), new_id("req_")
        request.META[REQUEST_ID] = request_id
        note(request_id=request_id)
        try:
            response = await _serve(handlers, request, path, public)
        except Exception as error:
            mapped = to_api_error(error, request_id, f"{request.method} {request.path}")
            if not request.META.get(HAS_RESPONSE):
                key = request.META.get(API_KEY)
                address = audit_log.address_of(request)
                place = RequestPlace(request_id, request.method or "", request.path, key, address)
                refused_requests.buffer.note(mapped, place)
            response = error_response(mapped, request_id, format_path(request))
        if format_path(request).startswith(MESSAGES):
            for name, value in rate_limit_headers(response.headers, datetime.now(UTC)).items():
                response[name] = value
        return with_headers(response, began, request_id)

    return csrf_exempt(view)


def shared_view(**handlers: Handler) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """Return a view whose requests wait for a place of their project: many requests of a project delay no other project."""
    return api_view(public=False, **{method: in_share(handler) for method, handler in handlers.items()})


def in_share(handler: Handler, shares: Callable[[], ProjectShares] | None = None) -> Handler:
    """Return `handler` with a wait for a place of the project among `shares`, by default `resource_shares`. Raises RateLimited."""

    async def handle(request: HttpRequest, key: ApiKey, **path: str) -> HttpResponseBase:
        try:
            async with (shares or resource_shares)().place(key.project):
                return await handler(request, key, **path)
        except ShareExceeded:
            raise RateLimited(SHARE_IS_FULL) from None

    return handle


def resource_shares() -> ProjectShares:
    """Return the places for lists, and for requests to files, containers and vector stores, of this process."""
    return shares_of("resources", settings.RESPONSES_RESOURCE_PARALLEL, max_waiting=MAX_WAITING)


def with_headers(response: HttpResponseBase, began: float, request_id: str) -> HttpResponseBase:
    """Add the headers of every API response."""
    response["x-request-id"] = request_id
    # The name that clients of Anthropic's API read.
    response["request-id"] = request_id
    response["openai-version"] = "2020-10-01"
    response["openai-processing-ms"] = str(int((time.monotonic() - began) * 1000))
    return response


async def _serve(handlers: dict[str, Handler], request: HttpRequest, path: dict[str, str], public: bool) -> HttpResponseBase:
    handler = handlers.get(request.method or "")
    if handler is None:
        refusal = error_response(
            MethodNotAllowed(f"Not allowed: {request.method} {request.path}. Allowed: {', '.join(handlers)}."),
            request.META[REQUEST_ID],
            format_path(request),
        )
        refusal["Allow"] = ", ".join(handlers)
        return refusal
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ("", "identity"):
        raise InvalidRequest(f"The body of your request has the content encoding '{encoding[:64]}'. Send it without one.")
    if public:
        return await handler(request, **path)
    key: ApiKey = await authenticate(request)
    request.META[API_KEY] = key
    note(key_id=key.pk, user_id=key.user_pk, project=key.project)
    response = await handler(request, key, **path)
    if (action := _audited_action(request)) and response.status_code < HTTPStatus.BAD_REQUEST:
        # The key of a browser has no row: the person is the actor.
        kind, pk = (audit_log.Kind.KEY, key.pk) if key.user_pk is None else (audit_log.Kind.USER, key.user_pk)
        actor = audit_log.Actor(kind, pk, str(key), audit_log.address_of(request))
        await sync_to_async(audit_log.record)(actor, action, request.path, key.project)
    return response


def _audited_action(request: HttpRequest) -> str:
    """Return the action of a request that belongs into the audit log, empty for any other request."""
    if request.method == "DELETE":
        return "api.delete"
    return "webhook.change" if request.method == "POST" and "/v1/webhook_endpoints" in request.path else ""


def format_path(request: HttpRequest) -> str:
    """Return the path that names the format of errors: clients of Anthropic's API also ask for models and files."""
    return MESSAGES if VERSION_HEADER in request.headers else local_path(request.path)


def error_response(error: ApiError, request_id: str, path: str = "") -> HttpResponse:
    """Return the response for an API error in the format of `path`, and log the error."""
    logger.info("%s %d %s param=%s code=%s", request_id, error.status, error.message[:200], error.param, error.code)
    response = json_response(error_body(path, error, request_id), error.status)
    for name, value in error.headers.items():
        response[name] = value
    return response
