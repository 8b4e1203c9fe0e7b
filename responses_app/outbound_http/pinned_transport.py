"""HTTP transport to checked addresses: each request resolves, checks and connects without a second name resolution."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass

import httpx2

from responses_app.outbound_http.addresses import Resolve, Unreachable, is_listed, resolve, resolve_checked
from responses_app.outbound_http.certificates import default_ssl_context

PORTS = {"https": 443, "http": 80}
MAX_BODY_BYTES = 8 * 1024 * 1024
# Bytes of a stream of server-sent events, which may last for the whole run.
MAX_STREAM_BYTES = 64 * 1024 * 1024
# Minimum time before a refusal without a request: an immediate answer would reveal which internal host names exist.
MIN_REFUSAL_S = 1.0


class AddressRefused(httpx2.ConnectError):
    """The URL may not be requested: its scheme, its host's addresses, or another origin than that of the first request."""


class ResponseRefused(httpx2.StreamError):
    """The response is compressed, or longer than the limit."""


class ResponseTooLong(ResponseRefused):
    """The response is longer than the limit of `limit` bytes."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the response has more than {limit:,} bytes")


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Limits of response bodies: `body` for bodies as a whole, `stream` for streams of events, both in bytes."""

    body: int = MAX_BODY_BYTES
    stream: int = MAX_STREAM_BYTES


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Transport to the checked addresses of one origin, without proxies and redirects.

    Hosts among `internal_hosts`, as `host` or `host:port`, may have internal addresses and may be requested with http. The same is
    true of every host if `allow_internal`; with `allow_http` every host may be requested with http.
    """

    def __init__(
        self,
        internal_hosts: Collection[str] = (),
        *,
        allow_internal: bool = False,
        allow_http: bool = False,
        resolve: Resolve = resolve,
        ssl_context: ssl.SSLContext | None = None,
        limits: BodyLimits | None = None,
        min_refusal_s: float = MIN_REFUSAL_S,
    ) -> None:
        self._internal_hosts, self._allow_internal, self._allow_http = internal_hosts, allow_internal, allow_http
        self._resolve, self._limits, self._min_refusal_s = resolve, limits or BodyLimits(), min_refusal_s
        self._origin: tuple[str, str, int] | None = None
        # Ignore the environment: a proxy would resolve the name again.
        self._inner = httpx2.AsyncHTTPTransport(verify=ssl_context or default_ssl_context(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` to the first address of the host that accepts a connection. Raises httpx2.HTTPError and ResponseRefused."""
        addresses = await self._addresses(request)
        for address in addresses[:-1]:
            try:
                return await self._send(request, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._send(request, addresses[-1])

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()

    async def _addresses(self, request: httpx2.Request) -> list[str]:
        """Return the checked addresses of the host. Raises AddressRefused, with the same message for every reason."""
        began_s = time.monotonic()
        try:
            async with asyncio.timeout(request.extensions.get("timeout", {}).get("connect")):
                return await self._checked(request.url)
        except (Unreachable, OSError, UnicodeError, TimeoutError) as error:
            await asyncio.sleep(began_s + self._min_refusal_s - time.monotonic())
            raise AddressRefused("the host is not on the public internet, or has no address", request=request) from error

    async def _checked(self, url: httpx2.URL) -> list[str]:
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise Unreachable("its URL is not allowed")
        port = url.port or PORTS[url.scheme]
        is_internal_allowed = self._allow_internal or is_listed(url.host, port, self._internal_hosts)
        if url.scheme == "http" and not (is_internal_allowed or self._allow_http):
            raise Unreachable("its URL is not https")
        self._origin = self._origin or (url.scheme, url.host, port)
        # A pooled TLS connection was verified for the name of the first request only.
        if self._origin != (url.scheme, url.host, port):
            raise Unreachable("its URL is of another origin than the first request")
        return await resolve_checked(url.host, port, allow_internal=is_internal_allowed, resolve=self._resolve)

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        headers = request.headers.copy()
        headers.update({"Host": request.url.netloc.decode("ascii"), "Accept-Encoding": "identity"})
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address.partition("%")[0]),
            headers=headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
        )
        response = await self._inner.handle_async_request(pinned)
        is_stream = response.headers.get("content-type", "").lower().startswith("text/event-stream")
        limit = self._limits.stream if is_stream else self._limits.body
        try:
            _check_headers(response.headers, limit)
        except ResponseRefused:
            await response.aclose()
            raise
        if isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _LimitedStream(response.stream, limit)
        return response


class _LimitedStream(httpx2.AsyncByteStream):
    """Body that raises ResponseRefused behind `limit` bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int) -> None:
        self._stream, self._limit = stream, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._limit:
                raise ResponseTooLong(self._limit)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _check_headers(headers: httpx2.Headers, limit: int) -> None:
    if headers.get("content-encoding", "identity").strip().lower() not in ("identity", ""):
        raise ResponseRefused("the response is compressed, without a request for compression")
    length = headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > limit:
        raise ResponseTooLong(limit)
