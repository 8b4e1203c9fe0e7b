"""ASGI handler of the API: a task for each request, and no middleware."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextvars import ContextVar
from io import BytesIO
from typing import Any, TypeAlias

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response
from django.core.signals import request_finished, request_started
from django.db import DatabaseError, close_old_connections, reset_queries
from django.http.response import HttpResponseBase

from responses_app.observability.records import current_request, note
from responses_app.store.db import is_general_error
from responses_app.store.files.storage import StorageUnavailable
from responses_app.utils.url_prefix import local_path
from responses_app.wire.sse import StreamInterrupted

Receive: TypeAlias = Callable[[], Awaitable[Mapping[str, Any]]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]

# Threads for database queries. Django would start and join a thread per request, blocking the event loop; these are permanent.
DATABASE_THREADS = 4
# Threads for lists, and for requests to files, containers and vector stores: their queries delay no response.
RESOURCE_THREADS = 2
RESOURCE_PATH = re.compile(
    r"GET /(?:openresponses/)?v1/(?:responses(?:/[^/]+/input_items)?|conversations/[^/]+/items"
    r"|chat/completions(?:/[^/]+/messages)?)/?$|[A-Z]+ /(?:openresponses/)?v1/(?:files|containers|vector_stores)(?:/|$)"
)

logger = logging.getLogger("responses.asgi")

# Each request returns its connection to the pool at its end, so there are no old connections to close at its start.
for receiver in (close_old_connections, reset_queries):
    request_started.disconnect(receiver)


class RequestThread(Executor):
    """Permanent thread for the queries of a request. `is_used` is True after the first query."""

    def __init__(self, thread: ThreadPoolExecutor) -> None:
        self._thread = thread
        self.is_used = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn` in the thread (overrides Executor)."""
        self.is_used = True
        return self._thread.submit(fn, *args, **kwargs)


_thread: ContextVar[RequestThread | None] = ContextVar("request thread", default=None)


class Disconnect:
    """Watch for the disconnect of a client, which cancels the task of the request."""

    def __init__(self, receive: Receive) -> None:
        self.is_cause = False
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - called in a coroutine
        self._receive, self._request = receive, task
        self._task: asyncio.Task[None] | None = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        await self._receive()
        self.is_cause = True
        self._request.cancel()

    def stop(self) -> None:
        """Stop watching. A cancelled task keeps a traceback, so this would be a cycle if the task was kept."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def absorb(self) -> bool:
        """Return True if the disconnect has cancelled the request. The request can then await again."""
        if self.is_cause:
            self._request.uncancel()
        return self.is_cause


class ApiHandler(ASGIHandler):
    """Handler of the API. Each middleware would cost two thread switches per request.

    Django's handler runs a request in a task of its own, waits for that task and for a disconnect in a third one, and closes the
    response in a thread. A large `chunk_size` keeps every event in a single write; the default splits at 64 KiB.
    """

    chunk_size = 2**30

    def __init__(self) -> None:
        super().__init__()
        self.threads = _make_threads("database", DATABASE_THREADS)
        self.resource_threads = _make_threads("resources", RESOURCE_THREADS)

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle a request. All queries of the request run in the same permanent thread."""
        is_resource = RESOURCE_PATH.match(f"{scope['method']} {local_path(scope['path'])}") is not None
        thread = RequestThread(next(self.resource_threads if is_resource else self.threads))
        _thread.set(thread)
        async with ThreadSensitiveContext(executor=thread):
            try:
                await self.handle(scope, receive, send)
            except Exception as error:
                # Django answers errors before the first byte. After the first byte only a closed connection shows the client that
                # the stream is incomplete. Daphne would try to send an error page, fail, and leave the connection open.
                record = current_request.get()
                uid = record.request_id if record else "-"
                if isinstance(error, DatabaseError) and is_general_error(error):
                    logger.error("%s a stream was cut: the database is away: %s", uid, error)
                elif isinstance(error, StorageUnavailable):
                    logger.error("%s a download was cut: the storage of files: %s", uid, error)
                elif not isinstance(error, StreamInterrupted):
                    logger.exception("a stream was interrupted: %s", error)
                await send({"type": "http.response.cut"})

    async def handle(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Handle a request in the current task (overrides Django)."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        await request_started.asend(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        note(request=request)
        try:
            if refusal is not None:
                await self.send_response(refusal, send)
                await _close(refusal)
            else:
                await self._respond(request, receive, send)
        finally:
            body.close()

    async def read_body(self, receive: Receive) -> Any:
        """Return the body as a file. A body in a single message needs no temporary file (overrides Django)."""
        first = await receive()
        if first["type"] == "http.request" and not first.get("more_body"):
            return BytesIO(first.get("body", b""))
        messages = iter([first])

        async def read_remaining() -> Mapping[str, Any]:
            return next(messages, None) or await receive()

        return await super().read_body(read_remaining)

    async def _respond(self, request: Any, receive: Receive, send: Send) -> None:
        """Send the response, unless the client disconnects, and close the response."""
        response, disconnect = None, Disconnect(receive)
        try:
            response = await self.run_get_response(request)
            await self.send_response(response, send)
        except asyncio.CancelledError:
            if not disconnect.absorb():
                raise
        finally:
            disconnect.stop()
        await _close(response)

    def load_middleware(self, is_async: bool = False) -> None:
        """Load no middleware, regardless of the settings."""
        super().load_middleware(is_async)
        for hooks in ("_view_middleware", "_template_response_middleware", "_exception_middleware"):
            setattr(self, hooks, [])
        self._middleware_chain = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]


def _make_threads(name: str, count: int) -> Iterator[ThreadPoolExecutor]:
    return itertools.cycle([ThreadPoolExecutor(1, f"{name}-{number}") for number in range(count)])


async def _close(response: HttpResponseBase | None) -> None:
    """Close the response, if any. The end of a request returns the connection of its thread to the pool."""
    close = _send_finished if response is None else response.close
    thread = _thread.get()
    if thread is not None and not thread.is_used:
        close()
    else:
        await sync_to_async(close)()


def _send_finished() -> None:
    request_finished.send(sender=ApiHandler)
