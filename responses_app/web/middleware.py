"""Django middleware that changes responses, for sync and async handlers alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Change: TypeAlias = Callable[[HttpResponseBase], HttpResponseBase]
Handler: TypeAlias = Callable[[HttpRequest], object]


def response_middleware(change: Change) -> Callable[[Handler], Handler]:
    """Return a middleware that passes every response through `change`."""

    @sync_and_async_middleware
    def middleware(get_response: Handler) -> Handler:
        if iscoroutinefunction(get_response):
            following: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

            async def handle_async(request: HttpRequest) -> HttpResponseBase:
                return change(await following(request))

            return handle_async

        def handle(request: HttpRequest) -> HttpResponseBase:
            response = get_response(request)
            assert isinstance(response, HttpResponseBase)  # noqa: S101 - the other side of the choice above
            return change(response)

        return handle

    result: Callable[[Handler], Handler] = middleware
    return result
