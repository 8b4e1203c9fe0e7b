"""Database connections of pages while a client reads: a stream that lasts, or a slow client, holds none of the pool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from project.asgi import Handler
from responses_app.wire.sse import StreamInterrupted


async def parts() -> AsyncIterator[bytes]:
    for _ in range(2):
        await User.objects.acount()
        yield b"part"


class QueryingHandler(Handler):
    """Handler that asks the database before it responds."""

    def __init__(self, response: HttpResponseBase) -> None:
        super().__init__()
        self.response = response

    async def get_response_async(self, request: Any) -> Any:
        await User.objects.acount()
        return self.response


async def interrupted() -> AsyncIterator[bytes]:
    yield b"part"
    raise StreamInterrupted


def is_connected() -> bool:
    return connection.connection is not None


@pytest.mark.django_db(transaction=True)
def test_interrupted_stream_cuts_the_connection() -> None:
    sent: list[str] = []
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await asyncio.Event().wait()
        raise AssertionError("the client stays")

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message["type"])

    async def main() -> None:
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        await QueryingHandler(StreamingHttpResponse(interrupted()))(scope, receive, send)

    asyncio.run(main())
    assert sent == ["http.response.start", "http.response.body", "http.response.cut"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("is_stream", [True, False])
def test_page_holds_no_connection_while_it_is_sent(*, is_stream: bool) -> None:
    connected: list[bool] = []
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in messages:
            return message
        await asyncio.Event().wait()
        raise AssertionError("the client stays")

    async def send(message: Mapping[str, Any]) -> None:
        del message
        connected.append(await sync_to_async(is_connected)())

    async def main() -> None:
        response = StreamingHttpResponse(parts()) if is_stream else HttpResponse(b"page")
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        await QueryingHandler(response)(scope, receive, send)

    asyncio.run(main())
    assert connected == [False] * (4 if is_stream else 2)
