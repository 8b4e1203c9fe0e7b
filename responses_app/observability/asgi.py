"""ASGI applications whose requests are reported to the observers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from responses_app.observability import events
from responses_app.observability.records import CLIENT_CLOSED, ObservedRequest, current_request

Receive: TypeAlias = Callable[[], Awaitable[Any]]
Send: TypeAlias = Callable[[Any], Awaitable[None]]
Application: TypeAlias = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

SWITCHING_PROTOCOLS, FORBIDDEN, SERVER_ERROR = 101, 403, 500


async def observed_http(application: Application, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Handle an HTTP request and report it at the end, also if the client has left."""
    if not events.is_observed():
        return await application(scope, receive, send)
    record = ObservedRequest.of_scope(scope["method"], scope)
    current_request.set(record)
    events.request_began(record)

    async def send_and_note(message: Any) -> None:
        if message["type"] == "http.response.start":
            record.status = message["status"]
        await send(message)

    try:
        await application(scope, receive, send_and_note)
    except Exception:
        if record.status == CLIENT_CLOSED:
            record.status = SERVER_ERROR
        raise
    finally:
        events.request_ended(record)


async def observed_socket(application: Application, scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """Handle a WebSocket and report the handshake when it is answered."""
    if not events.is_observed():
        return await application(scope, receive, send)
    record = ObservedRequest.of_scope("GET", scope)
    current_request.set(record)
    answers = {"websocket.accept": SWITCHING_PROTOCOLS, "websocket.close": FORBIDDEN}

    async def send_and_note(message: Any) -> None:
        if record.status == CLIENT_CLOSED and message["type"] != "websocket.http.response.body":
            record.status = message.get("status") or answers[message["type"]]
            events.request_ended(record)
        await send(message)

    await application(scope, receive, send_and_note)
