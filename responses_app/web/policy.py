"""The Content-Security-Policy of every page for people, the admin's too: nothing runs, loads or is sent but files of this server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

# Pictures are those of the store, which a page may also carry or make by itself; nothing else comes from anywhere but here.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)


def _told(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    return response


@sync_and_async_middleware
def middleware(get_response: Callable[[HttpRequest], object]) -> Callable[[HttpRequest], object]:
    """Django's hook."""
    if iscoroutinefunction(get_response):
        following: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

        async def later(request: HttpRequest) -> HttpResponseBase:
            return _told(await following(request))

        return later

    def now(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        assert isinstance(response, HttpResponseBase)  # noqa: S101 - the other side of the choice above
        return _told(response)

    return now
