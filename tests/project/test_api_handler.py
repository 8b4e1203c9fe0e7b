"""Handler of the API: disconnects, cancellations, threads that are not needed, bodies in several messages."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import AsyncIterator, Mapping
from typing import Any, ClassVar

import pytest
from asgiref.sync import sync_to_async
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from project.api_handler import ApiHandler, Disconnect
from tests.support.waiting import run_ready_tasks

SCOPE = {"type": "http", "method": "POST", "path": "/v1/responses", "headers": [], "query_string": b""}
LIMIT_S = 120.0


@pytest.fixture(autouse=True)
def no_receivers() -> None:
    """Disconnect what `project.api_handler` disconnects: Django's test client and its count of queries connect it again."""
    for receiver in (close_old_connections, reset_queries):
        request_started.disconnect(receiver)


class Closing(StreamingHttpResponse):
    """Endless stream; `closed_by` has the names of the threads that closed a stream."""

    closed_by: ClassVar[list[str]] = []

    def close(self) -> None:
        super().close()
        self.closed_by.append(threading.current_thread().name)


class FakeView(ApiHandler):
    """Handler with one view: `kind` selects its behaviour."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.bodies, self.cancelled = kind, list[bytes](), 0

    async def get_response_async(self, request: Any) -> HttpResponseBase:
        self.bodies.append(request.body)
        if self.kind == "queries":
            await sync_to_async(int)()
        if self.kind in ("streams", "queries"):
            return Closing(_endless())
        if self.kind == "waits":
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        return HttpResponse(b"done")


async def _endless() -> AsyncIterator[bytes]:
    yield b"first"
    await asyncio.Event().wait()


class ApplicationClient:
    """Client that sends a body in parts, and disconnects when told to."""

    def __init__(self, *parts: bytes) -> None:
        more: list[dict[str, Any]] = [{"type": "http.request", "body": part, "more_body": True} for part in parts[:-1]]
        self._messages = iter([*more, {"type": "http.request", "body": parts[-1]}])
        self.gone, self.waits = asyncio.Event(), asyncio.Event()
        self.sent: list[Mapping[str, Any]] = []
        self.got = asyncio.Event()

    async def receive(self) -> Mapping[str, Any]:
        for message in self._messages:
            return message
        self.waits.set()
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Mapping[str, Any]) -> None:
        self.sent.append(message)
        if message.get("body"):
            self.got.set()


async def request(handler: ApiHandler, client: ApplicationClient) -> None:
    async with asyncio.timeout(LIMIT_S):
        await handler(SCOPE, client.receive, client.send)


def test_body_in_parts_is_joined() -> None:
    async def main() -> list[bytes]:
        handler = FakeView("answers")
        for parts in ((b"",), (b"whole",), (b"in ", b"three ", b"parts")):
            client = ApplicationClient(*parts)
            await request(handler, client)
            assert client.sent[-1]["body"] == b"done"
        return handler.bodies

    assert asyncio.run(main()) == [b"", b"whole", b"in three parts"]


def test_disconnect_cancels_the_view_and_nothing_is_sent() -> None:
    async def main() -> None:
        handler, client = FakeView("waits"), ApplicationClient(b"{}")
        asyncio.get_running_loop().call_soon(client.gone.set)
        await request(handler, client)
        assert (handler.cancelled, client.sent) == (1, [])

    asyncio.run(main())


@pytest.mark.parametrize(("kind", "thread"), [("streams", "MainThread"), ("queries", "database-0")])
def test_stream_is_closed_in_the_thread_of_its_queries(kind: str, thread: str) -> None:
    async def main() -> None:
        handler, client = FakeView(kind), ApplicationClient(b"{}")
        running = asyncio.create_task(request(handler, client))
        await client.got.wait()
        client.gone.set()
        await running

    Closing.closed_by.clear()
    asyncio.run(main())
    assert [name.removesuffix("_0") for name in Closing.closed_by] == [thread]


def test_cancellation_by_the_server_reaches_the_caller() -> None:
    async def main() -> None:
        handler, client = FakeView("waits"), ApplicationClient(b"{}")
        running = asyncio.create_task(request(handler, client))
        await client.waits.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert handler.cancelled == 1

    asyncio.run(main())


def test_watch_for_a_disconnect_is_freed_without_the_garbage_collector() -> None:
    async def main() -> None:
        disconnect = Disconnect(asyncio.Event().wait)  # type: ignore[arg-type]
        watch = weakref.ref(disconnect)
        await run_ready_tasks()
        disconnect.stop()
        del disconnect
        await run_ready_tasks()
        assert watch() is None

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
