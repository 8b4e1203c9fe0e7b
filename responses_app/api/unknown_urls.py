"""Unknown URLs of the API: a JSON 404 that names the URL to use instead."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import Resolver404, resolve
from django.utils.decorators import sync_and_async_middleware
from django.views.decorators.csrf import csrf_exempt

from responses_app.api.http import JSON, error_response, format_path, json_response, with_headers
from responses_app.api_formats.messages.message import VERSION_HEADER
from responses_app.errors import NotFound
from responses_app.observability.records import note
from responses_app.runs.ids import new_id
from responses_app.utils.url_prefix import local_path, url_prefix

Handler: TypeAlias = Callable[[HttpRequest], object]

# Headers that clients of the API send, and browsers do not.
CREDENTIALS: Final = ("authorization", "x-api-key", VERSION_HEADER)
# What to use in place of other URLs of OpenAI's and Anthropic's APIs, by the beginning of the path below `/v1/`.
INSTEAD: Mapping[str, str] = {
    "messages/batches": "This server has no batches: send each request to '/v1/messages'.",
    "batches": "This server has no batches: send each request to '/v1/responses', with 'background' to get the answer later.",
    "completions": "Use '/v1/chat/completions' or '/v1/responses'.",
    "complete": "Use '/v1/messages'.",
    "assistants": "Use '/v1/responses'.",
    "threads": "Use '/v1/conversations' with '/v1/responses'.",
    "embeddings": "This server computes no embeddings. It searches files with '/v1/vector_stores'.",
    "uploads": "Send whole files to '/v1/files'.",
    "audio": "Models of this server write text alone.",
    "images": "Models of this server write text alone.",
    "moderations": "This server has no moderation.",
    "skills": "This server has no skills.",
}


@csrf_exempt
async def not_found(request: HttpRequest, path: str = "") -> HttpResponseBase:
    """Answer an unknown path below `/v1` with a JSON 404."""
    return _refusal(request, _hint(path))


@sync_and_async_middleware
def answer_without_version(get_response: Handler) -> Handler:
    """Answer clients of the API whose base URL lacks the `/v1` in JSON, also where a page has the same path."""
    if iscoroutinefunction(get_response):
        get_async: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def handle_async(request: HttpRequest) -> HttpResponseBase:
            return _without_version(request) or await get_async(request)

        return handle_async

    def handle(request: HttpRequest) -> object:
        return _without_version(request) or get_response(request)

    return handle


def _without_version(request: HttpRequest) -> HttpResponseBase | None:
    """Return the answer to a client of the API at the root, or at the path of an endpoint without `/v1`, else None."""
    prefix, path = url_prefix(), local_path(request.path)
    if not path or path.startswith("/v1/") or not _is_api_client(request):
        return None
    if path == "/":
        return None if _is_of_another_app(request.path_info) else _root(request, prefix)
    # Every path below `/v1` has a view.
    if resolve(f"{prefix}/v1{path}").func is not_found and not _instead(path):
        return None
    if _is_of_another_app(request.path_info):
        return None
    hint = f" The API is below '{prefix}/v1': '{prefix}/v1{path}'. Add '/v1' to the base URL of your client."
    return _refusal(request, hint)


def _root(request: HttpRequest, prefix: str) -> HttpResponseBase:
    """Answer a client of the API at the root: clients check there that the server of their base URL answers."""
    hint = f"The API is below '{prefix}/v1'."
    if request.method not in ("GET", "HEAD"):
        return _refusal(request, f" {hint}")
    return with_headers(json_response({"message": hint}), time.monotonic(), new_id("req_"))


def _is_of_another_app(path: str) -> bool:
    """Return whether the path belongs to a view of another app in a Django project."""
    try:
        view = resolve(path).func
    except Resolver404:
        return False
    return not getattr(view, "__module__", "").startswith("responses_app.")


def _is_api_client(request: HttpRequest) -> bool:
    """Return whether a request comes from a client of the API: browsers ask for HTML, and forms of the pages send no JSON.

    Scripts of the pages have the cookie of a session. Behind a proxy with accounts they have credentials too.
    """
    headers = request.headers
    if "text/html" in headers.get("accept", "") or settings.SESSION_COOKIE_NAME in request.COOKIES:
        return False
    is_json = JSON in headers.get("accept", "") or request.content_type == JSON
    return is_json or any(name in headers for name in CREDENTIALS)


def _refusal(request: HttpRequest, hint: str) -> HttpResponseBase:
    began, request_id = time.monotonic(), new_id("req_")
    note(request_id=request_id)
    error = NotFound(f"Invalid URL ({request.method} {request.path}).{hint}")
    return with_headers(error_response(error, request_id, format_path(request)), began, request_id)


def _hint(path: str) -> str:
    """Return a sentence about the path below `/v1`, which begins with a slash."""
    if path.startswith("/v1/"):
        return " Leave out '/v1' at the end of the base URL of your client."
    if path.startswith("//"):
        return " Leave out the slash at the end of the base URL of your client."
    hint = _instead(path)
    return f" {hint}" if hint else ""


def _instead(path: str) -> str:
    return next((text for start, text in INSTEAD.items() if re.match(rf"/{start}(/|$)", path)), "")
