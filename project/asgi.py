"""ASGI application: the API without middleware, and the pages with middleware and static files."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
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
from django.core.handlers.exception import response_for_exception
from django.http import Http404

from project.pool import set_server_timeout

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
set_server_timeout()
django.setup(set_prefix=False)

# Imported after `django.setup`, because these modules use settings and models.
from project.api_handler import ApiHandler  # noqa: E402
from project.cors import answer_preflight, with_cors  # noqa: E402
from project.lifespan import lifespan  # noqa: E402
from responses_app.access.api_keys import bearer, cached_key  # noqa: E402
from responses_app.access.cors import CorsPolicy  # noqa: E402
from responses_app.access.gate import LOG_PATHS, KeyGate  # noqa: E402
from responses_app.errors import Unauthorized  # noqa: E402
from responses_app.models import ApiKey  # noqa: E402
from responses_app.observability.asgi import observed_http, observed_socket  # noqa: E402
from responses_app.observability.records import note  # noqa: E402
from responses_app.runs import manager  # noqa: E402
from responses_app.runs.ids import new_id  # noqa: E402
from responses_app.sockets import routing  # noqa: E402
from responses_app.store.db import release_connection  # noqa: E402
from responses_app.utils.url_prefix import local_path  # noqa: E402
from responses_app.web.delivery.compression import compress_static  # noqa: E402
from responses_app.wire.sse import StreamInterrupted  # noqa: E402
from responses_app.wire.transport_limits import MIB, TransportLimits  # noqa: E402

API = ("/v1", "/openresponses/v1", "/health", "/metrics")
# Beginnings of the paths whose GET takes a turn. Probes and metrics wait for no client.
READS = ("/v1/", "/openresponses/v1/")
# Paths whose POST begins a response.
STARTS = frozenset(
    path + slash
    for path in ("/v1/responses", "/openresponses/v1/responses", "/v1/chat/completions", "/v1/messages")
    for slash in ("", "/")
)

# Seconds to wait for the tasks of a cancelled request.
CANCEL_TIMEOUT_S = 2.0

logger = logging.getLogger("responses.asgi")

# The tasks of a request. Tasks inherit the context of the task that starts them.
_tasks: ContextVar[list[asyncio.Task[Any]]] = ContextVar("tasks")


def _register_task() -> None:
    task = asyncio.current_task()
    if task is not None:
        _tasks.get().append(task)


class Handler(ASGIHandler):
    """ASGI handler of Django. A large `chunk_size` keeps every event in a single write; the default splits at 64 KiB."""

    chunk_size = 2**30

    async def handle(
        self, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
    ) -> None:
        """Handle a request. Cancels the two tasks started by Django if the request is cancelled, as at shutdown."""
        tasks: list[asyncio.Task[Any]] = []
        _tasks.set(tasks)
        try:
            await super().handle(scope, receive, send)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S)
            raise

    def create_request(self, scope: Mapping[str, Any], body_file: Any) -> Any:
        """Create and keep the request for the observers (overrides Django)."""
        request, refusal = super().create_request(scope, body_file)
        note(request=request)
        return request, refusal

    async def send_response(self, response: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Send a response. Before it, and before each part of a stream, the thread returns its connection (overrides Django).

        A live page lasts as long as its response, and a client may read slowly.
        """

        async def send_part(message: Any) -> None:
            if response.streaming or message["type"] == "http.response.start":
                await sync_to_async(release_connection)()
            await send(message)

        try:
            await super().send_response(response, send_part)
        except StreamInterrupted:
            # Daphne would leave the connection open.
            await send({"type": "http.response.cut"})

    async def listen_for_disconnect(self, receive: Callable[[], Awaitable[Any]]) -> None:
        """Return when the client disconnects. Django would raise RequestAborted and keep a traceback with all frames alive."""
        _register_task()
        with suppress(RequestAborted):
            await super().listen_for_disconnect(receive)

    async def run_get_response(self, request: Any) -> Any:
        """Get the response, in the second task of the request."""
        _register_task()
        return await super().run_get_response(request)


class StaticHandler(ASGIStaticFilesHandler):
    """Static files handler with compression. Answers 404 for invalid paths, where Django would answer 500."""

    async def get_response_async(self, request: Any) -> Any:
        """Answer 404 for a path outside of the static files or invalid in the file system."""
        try:
            response = await super().get_response_async(request)
            return await compress_static(request, response)
        except (SuspiciousOperation, ValueError, OSError) as error:
            missing = Http404(f"There is no such static file: {type(error).__name__}")
            return await sync_to_async(response_for_exception, thread_sensitive=False)(request, missing)


api = ApiHandler()
site = StaticHandler(Handler())


async def http(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Handle an HTTP request: API paths go to `api`, the rest to `site`.

    A request that begins a response waits for its turn, and so does one that reads: many of these take the event loop as well.
    """
    policy = settings.RESPONSES_CORS_POLICY
    if await answer_preflight(policy, scope, send):
        return
    path = local_path(scope["path"])
    is_start = scope["method"] == "POST" and path in STARTS
    if is_start or (scope["method"] == "GET" and path.startswith(READS)):
        async with manager.current().starts.turn(_project(scope), is_response=is_start):
            await _handle(policy, scope, receive, send)
    else:
        await _handle(policy, scope, receive, send)


def _project(scope: dict[str, Any]) -> str:
    """Return the project of the API key; an empty string if the key is not in the cache, or wrong."""
    headers = dict(scope["headers"])
    authorization, api_key = (headers.get(name, b"").decode("latin-1") for name in (b"authorization", b"x-api-key"))
    with suppress(Unauthorized):
        if (key := cached_key(bearer(authorization, api_key))) is not None:
            return key.project
    return ""


async def _handle(
    policy: CorsPolicy, scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    if settings.RESPONSES_TLS and settings.SECURE_PROXY_SSL_HEADER is None:
        # By RESPONSES_TLS the operator declares that a proxy received every request over TLS, although it forwards plain HTTP.
        scope = {**scope, "scheme": "https"}
    path = local_path(scope["path"])
    if path.startswith(API) or path in LOG_PATHS:
        await api(scope, receive, with_cors(policy, scope, send))
    else:
        await site(scope, receive, with_cors(policy, scope, _with_request_id(send)))


def _with_request_id(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    """Return a `send` that adds `x-request-id` to the answer of a page, and note the id for the log. The API has its own."""
    request_id = new_id("req_")
    note(request_id=request_id)

    async def send_with_id(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), (b"x-request-id", request_id.encode())]}
        await send(message)

    return send_with_id


async def sockets(scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Handle a WebSocket. All queries of the connection run in the same permanent thread."""
    async with ThreadSensitiveContext(executor=next(api.threads)):
        await routing.application({**scope, "path": local_path(scope["path"])}, receive, send)


async def connection(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Handle an HTTP request or a WebSocket of the client behind trusted proxies."""
    handle, observed = (http, observed_http) if scope["type"] == "http" else (sockets, observed_socket)
    await observed(handle, settings.RESPONSES_TRUSTED_PROXIES.resolved(scope), receive, send)


application = ProtocolTypeRouter({"http": connection, "websocket": connection, "lifespan": lifespan})


async def database_thread(look_up: Callable[[], Awaitable[ApiKey]]) -> ApiKey:
    """Await `look_up` with all queries in the same permanent thread."""
    async with ThreadSensitiveContext(executor=next(api.threads)):
        return await look_up()


# Read by our own HTTP server. Other ASGI servers read every body, and the application checks the key and the limits.
gate = KeyGate(database_thread, settings.RESPONSES_CORS_POLICY, settings.RESPONSES_TRUSTED_PROXIES)
limits = TransportLimits(
    connections=settings.RESPONSES_MAX_CONNECTIONS,
    unfinished=settings.RESPONSES_MAX_UNFINISHED_MIB * MIB,
    unfinished_each=settings.RESPONSES_MAX_UNFINISHED_MIB_PER_KEY * MIB,
    # A MiB more, for the other fields of the form.
    upload=(settings.RESPONSES_FILE_MIB + 1) * MIB,
    upload_folder=settings.RESPONSES_UPLOAD_DIR,
    ping_interval_s=settings.RESPONSES_HEARTBEAT,
)
