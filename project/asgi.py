"""The ASGI entry: the API with nothing around it, and Django with its middleware and static files for people."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import django
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from channels.routing import ProtocolTypeRouter
from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.exceptions import RequestAborted, SuspiciousOperation
from django.core.handlers.asgi import ASGIHandler
from django.core.handlers.exception import convert_exception_to_response, response_for_exception
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries
from django.http import Http404

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup(set_prefix=False)

# Django is set up first: this knows its settings.
from responses_app.access.gate import KeyGate  # noqa: E402
from responses_app.local.transport_limits import MIB, TransportLimits  # noqa: E402
from responses_app.models import ApiKey  # noqa: E402
from responses_app.sockets import routing  # noqa: E402
from responses_app.wire.sse import StreamInterrupted  # noqa: E402

API = ("/v1", "/openresponses/v1", "/health")

# Each request gives its connection back when it ends, so at its beginning there is nothing old to look for.
for receiver in (close_old_connections, reset_queries):
    request_started.disconnect(receiver)

# Django starts and joins a thread of its own for the database of every request, on the loop that streams. These stay.
DATABASE_THREADS = 4

# How long the end of a cancelled request may take.
CANCEL_LIMIT = 2.0

logger = logging.getLogger("responses.asgi")

# The tasks of a request, which inherit this from whoever starts them.
_tasks: ContextVar[list[asyncio.Task[Any]]] = ContextVar("tasks")


def _mine() -> None:
    task = asyncio.current_task()
    if task is not None:
        _tasks.get().append(task)


class Handler(ASGIHandler):
    """Django's handler, which would cut events over 64 KiB in two: one event is one write (responses-api.md §2.1)."""

    chunk_size = 2**30

    async def handle(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """One request. Django runs it as two tasks, and leaves both to themselves when it is cancelled, as at an ordered stop."""
        tasks: list[asyncio.Task[Any]] = []
        _tasks.set(tasks)
        try:
            await super().handle(scope, receive, send)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=CANCEL_LIMIT)
            raise

    async def listen_for_disconnect(self, receive: Callable[[], Awaitable[Any]]) -> None:
        """Return when the client has gone. Django raises what it then drops: a traceback to keep, and all frames below it."""
        _mine()
        with suppress(RequestAborted):
            await super().listen_for_disconnect(receive)

    async def run_get_response(self, request: Any) -> Any:
        """The answer, in the other one of the two."""
        _mine()
        return await super().run_get_response(request)


class ApiHandler(Handler):
    """No middleware: sessions, forms and frames mean nothing to the API, and each costs it two changes of thread."""

    def __init__(self) -> None:
        super().__init__()
        self.threads = itertools.cycle([ThreadPoolExecutor(1, f"database-{number}") for number in range(DATABASE_THREADS)])

    async def __call__(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """One request, whose queries all run in one of the threads that are kept."""
        async with ThreadSensitiveContext(executor=next(self.threads)):
            try:
                await super().__call__(scope, receive, send)
            except Exception as error:
                # Django answers for what goes wrong before the first byte. Behind it only a broken connection tells the client
                # that this is not the end; Daphne would try to send an error page, fail, and leave the connection open for ever.
                if not isinstance(error, StreamInterrupted):
                    logger.exception("a stream was cut: %s", error)
                await send({"type": "http.response.cut"})

    def load_middleware(self, is_async: bool = False) -> None:
        """An empty chain, whatever the settings say."""
        super().load_middleware(is_async)
        for hooks in ("_view_middleware", "_template_response_middleware", "_exception_middleware"):
            setattr(self, hooks, [])
        self._middleware_chain = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]


class StaticHandler(ASGIStaticFilesHandler):
    """Django's handler for static files, which lets everything but Http404 escape as an error of the server."""

    async def get_response_async(self, request: Any) -> Any:
        """Answer 404 for a path that leads out of the static files, or that no file system takes."""
        try:
            return await super().get_response_async(request)
        except (SuspiciousOperation, ValueError, OSError) as error:
            missing = Http404(f"There is no such static file: {type(error).__name__}")
            return await sync_to_async(response_for_exception, thread_sensitive=False)(request, missing)


api = ApiHandler()
site = StaticHandler(Handler())


async def http(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """One request: the API by its path, anything else to the site."""
    if settings.RESPONSES_TLS and settings.SECURE_PROXY_SSL_HEADER is None:
        # The operator says that all requests have come to a proxy by TLS, although they come from it without.
        scope = {**scope, "scheme": "https"}
    chosen: Any = api if scope["path"].startswith(API) else site
    await chosen(scope, receive, send)


async def sockets(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """One WebSocket, whose queries all run in one of the threads that the API keeps."""
    async with ThreadSensitiveContext(executor=next(api.threads)):
        await routing.application(scope, receive, send)


application = ProtocolTypeRouter({"http": http, "websocket": sockets})


async def database_thread(look_up: Callable[[], Awaitable[ApiKey]]) -> ApiKey:
    """Await a look-up whose queries run in one of the threads that the API keeps."""
    async with ThreadSensitiveContext(executor=next(api.threads)):
        return await look_up()


# What a transport of ours is told: other ASGI servers read every body and have the application answer.
gate = KeyGate(database_thread)
limits = TransportLimits(
    connections=settings.RESPONSES_MAX_CONNECTIONS,
    unfinished=settings.RESPONSES_MAX_UNFINISHED_MIB * MIB,
    unfinished_each=settings.RESPONSES_MAX_UNFINISHED_MIB_PER_KEY * MIB,
)
