"""Settings and ASGI handling of CORS: preflights, and the headers of answers to browser apps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import orjson
from django.core.exceptions import ImproperlyConfigured

from responses_app.access.cors import CorsPolicy, not_allowed, parse_origins
from responses_app.errors import Forbidden
from responses_app.runs.ids import new_id

Send: TypeAlias = Callable[[Any], Awaitable[None]]


def cors_policy(origins: list[str]) -> CorsPolicy:
    """Return the policy of RESPONSES_CORS_ORIGINS. Raises ImproperlyConfigured."""
    try:
        return CorsPolicy(parse_origins(origins))
    except ValueError as error:
        raise ImproperlyConfigured(f"RESPONSES_CORS_ORIGINS: {error}") from None


async def answer_preflight(policy: CorsPolicy, scope: dict[str, Any], send: Send) -> bool:
    """Answer a preflight of a browser. Return False, and send nothing, for any other request."""
    headers = dict(scope["headers"])
    origin = headers.get(b"origin", b"").decode("latin1")
    is_preflight = scope["method"] == "OPTIONS" and origin and b"access-control-request-method" in headers
    if not is_preflight or not policy.covers(scope["path"]):
        return False
    if origin in policy.origins:
        names = headers.get(b"access-control-request-headers", b"")
        await _answer(send, 204, policy.preflight_headers(scope["path"], origin, names), b"")
        return True
    body = orjson.dumps(Forbidden(not_allowed(origin)).body())
    await _answer(send, 403, [(b"content-type", b"application/json"), *policy.headers(scope["path"], origin)], body)
    return True


def with_cors(policy: CorsPolicy, scope: dict[str, Any], send: Send) -> Send:
    """Return `send` with the CORS headers of an answer of the API; `send` itself where CORS is off."""
    if not policy.covers(scope["path"]):
        return send
    origin = next((value.decode("latin1") for name, value in scope["headers"] if name == b"origin"), "")
    more = policy.headers(scope["path"], origin)

    async def send_with_headers(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *more]}
        await send(message)

    return send_with_headers


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    standing = [(b"x-request-id", new_id("req_").encode()), (b"content-length", b"%d" % len(body))]
    # An answer without content has no length (RFC 9110, section 8.6).
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *standing[: 2 if body else 1]]})
    await send({"type": "http.response.body", "body": body})
