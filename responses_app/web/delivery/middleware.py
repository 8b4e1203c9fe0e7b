"""Django middleware to change responses, for sync and async handlers."""

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
    """Return a middleware to pass every response through `change`."""

    @sync_and_async_middleware
    def middleware(get_response: Handler) -> Handler:
        if iscoroutinefunction(get_response):
            get_async: Callable[[HttpRequest], Awaitable[HttpResponseBase]] = get_response

            async def handle_async(request: HttpRequest) -> HttpResponseBase:
                return change(await get_async(request))

            return handle_async

        def handle(request: HttpRequest) -> HttpResponseBase:
            response = get_response(request)
            assert isinstance(response, HttpResponseBase)  # noqa: S101 - a sync handler returns a response
            return change(response)

        return handle

    result: Callable[[Handler], Handler] = middleware
    return result
