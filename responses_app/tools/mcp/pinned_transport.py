"""HTTP transport of MCP servers: checked addresses without a second name resolution, and bounded answers."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import cache
from typing import TypeAlias

import httpx2

from responses_app.images.addresses import is_public
from responses_app.images.fetch import resolve
from responses_app.tools.mcp.errors import McpError

# Bytes of a response: an answer, or the messages of a stream.
MAX_BODY_BYTES = 16 * 1024 * 1024
PORTS = {"https": 443, "http": 80}
REFUSED = "The MCP server cannot be reached: its host is not on the public internet, or has no address."
TOO_LONG = f"The MCP server sent more than {MAX_BODY_BYTES} bytes in a response."

Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]


class PinnedTransport(httpx2.AsyncBaseTransport):
    """Transport to checked addresses, for each request anew.

    Hosts among `internal_hosts`, as `host` or `host:port`, may have internal addresses, and any host if `is_trusted`. Redirects and
    proxies are not followed. `status` is the last HTTP status from 400 on, `refusal` the error of the last refused request.
    """

    def __init__(
        self,
        internal_hosts: Collection[str] = (),
        *,
        is_trusted: bool = False,
        resolve: Resolve = resolve,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.status: int | None = None
        self.refusal: McpError | None = None
        self._internal_hosts, self._is_trusted, self._resolve = internal_hosts, is_trusted, resolve
        self._inner = httpx2.AsyncHTTPTransport(verify=ssl_context or _default_ssl_context(), trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request` to a checked address of the host. Raises httpx2.HTTPError."""
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

    async def _addresses(self, request: httpx2.Request) -> Sequence[str]:
        url = request.url
        if url.scheme not in PORTS or not url.host or url.userinfo:
            raise self._refused(request)
        port = url.port or PORTS[url.scheme]
        try:
            addresses = list(dict.fromkeys(await self._resolve(url.host, port)))
        except (OSError, UnicodeError) as error:
            raise self._refused(request) from error
        host = url.host.lower()
        is_internal_allowed = self._is_trusted or host in self._internal_hosts or f"{host}:{port}" in self._internal_hosts
        if not addresses or not (is_internal_allowed or all(map(is_public, addresses))):
            raise self._refused(request)
        return addresses

    def _refused(self, request: httpx2.Request) -> httpx2.ConnectError:
        self.refusal = McpError(REFUSED)
        return httpx2.ConnectError(REFUSED, request=request)

    async def _send(self, request: httpx2.Request, address: str) -> httpx2.Response:
        pinned = httpx2.Request(
            request.method,
            request.url.copy_with(host=address.partition("%")[0]),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
        )
        response = await self._inner.handle_async_request(pinned)
        if response.status_code >= 400:
            self.status = response.status_code
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError("compressed response", request=request)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 - an async transport has async streams
        response.stream = _BoundedStream(self, response.stream)
        return response

    def on_too_long(self) -> httpx2.ReadError:
        """Store and return the error of a response that is too long."""
        self.refusal = McpError(TOO_LONG)
        return httpx2.ReadError(TOO_LONG)


class _BoundedStream(httpx2.AsyncByteStream):
    """Body of a response that ends with an error behind MAX_BODY_BYTES."""

    def __init__(self, transport: PinnedTransport, stream: httpx2.AsyncByteStream) -> None:
        self._transport, self._stream = transport, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise self._transport.on_too_long()
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def _default_ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()
