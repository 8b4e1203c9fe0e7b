"""Connections to a vLLM server: limits, keep-alive, errors and aborts."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import httpx2

from responses_app.engine_interface import EngineUnreachable
from responses_app.engines.http.codec import ENGINE_ID_PREFIX
from responses_app.outbound_http.certificates import TRUST, certificate_problem, default_ssl_context

logger = logging.getLogger("responses.engines")

POOL_WAIT_S = 30.0
CONNECT_S = 5.0
WRITE_S = 30.0
CHUNK_TIMEOUT_S = 600.0  # Maximum time between two chunks: a long prompt in a long queue can take minutes.
ABORT, ABORT_S = "/inference/v1/abort_requests", 5.0
IDLE_S = 4.0  # vLLM closes idle connections after 5 s, possibly during a write; this client closes them earlier.

# TCP keep-alive detects a vanished host after 10 + 3 * 5 s, long before CHUNK_TIMEOUT_S.
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
]


class EngineTransport(httpx2.AsyncHTTPTransport):
    """Transport with a log line for each reason why the certificate of the engine is not accepted: the engine seems to be away."""

    _problem: str | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request (overrides httpx2)."""
        problem = None
        try:
            return await super().handle_async_request(request)
        except httpx2.HTTPError as error:
            problem = certificate_problem(error)
            if problem and problem != self._problem:
                logger.error(
                    "the certificate of engine %s is not accepted (%s): %s", request.url.netloc.decode(), problem, TRUST
                )
            raise
        finally:
            self._problem = problem


def connect(base: str, key: str | None, connections: int) -> httpx2.AsyncClient:
    """Create a client with at most so many connections. `key` is the API key of the server."""
    limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=IDLE_S)
    # No compression: parts must be usable as received.
    headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"} | (
        {"Authorization": f"Bearer {key}"} if key else {}
    )
    return httpx2.AsyncClient(
        base_url=base,
        headers=headers,
        timeout=httpx2.Timeout(CHUNK_TIMEOUT_S, connect=CONNECT_S, write=WRITE_S, pool=POOL_WAIT_S),
        transport=EngineTransport(
            verify=default_ssl_context() if base.startswith("https:") else True,
            limits=limits,
            socket_options=KEEPALIVE,
            retries=1,
        ),
    )


def plain_http_hint(place: str, error: Exception) -> str:
    """Return that an https engine may serve plain HTTP, which waits for more of a TLS handshake or ends it; else empty."""
    is_handshake = isinstance(error, httpx2.ConnectTimeout) or "SSL" in str(error) or "handshake" in str(error)
    if not is_handshake or "CERTIFICATE_VERIFY_FAILED" in str(error) or not place.startswith("https://"):
        return ""
    return f"; if it serves plain HTTP, its URL begins with http://{place.removeprefix('https://').partition('/')[0]}"


@contextmanager
def map_errors(base: str) -> Iterator[None]:
    """Raise EngineUnreachable for errors of the connection."""
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        if problem := certificate_problem(error):
            raise EngineUnreachable(f"{base}: the certificate is not accepted ({problem}): {TRUST}") from error
        raise EngineUnreachable(f"{base}: {type(error).__name__} {error}".rstrip() + plain_http_hint(base, error)) from error


async def abort(client: httpx2.AsyncClient, request_ids: list[str]) -> None:
    """Abort requests on the server. A server that cannot be reached has aborted by itself."""
    ids = [ENGINE_ID_PREFIX + request_id for request_id in request_ids]
    # RuntimeError: the client was closed meanwhile.
    with suppress(httpx2.HTTPError, RuntimeError):
        await client.post(ABORT, json={"request_ids": ids}, timeout=ABORT_S)
