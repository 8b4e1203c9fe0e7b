"""Image fetching over HTTP: public addresses only, within limits, without a second name resolution after the check."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import httpx2

from responses_app.images.decode import MAX_BYTES, InvalidImage
from responses_app.outbound_http.addresses import Resolve, Unreachable, is_listed, resolve, resolve_checked
from responses_app.outbound_http.certificates import default_ssl_context

LIMIT_S = 20.0  # Time limit of a fetch: name resolution, redirects and body.
CONNECT_S = 5.0
# Minimum time before a refusal without a request: an immediate answer would reveal which internal host names exist.
MIN_REFUSAL_S = 1.0
MAX_REDIRECTS = 3
MAX_URL_LENGTH = 8192
PORTS = {"https": 443, "http": 80}
UNREACHABLE = "its host is not on the public internet, cannot be reached or does not answer in time"
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
# No compression, which could turn a small response into a large one. Some hosts require a User-Agent.
_HEADERS = {"Accept": "image/png,image/jpeg,image/webp,image/gif", "Accept-Encoding": "identity", "User-Agent": "Verbatim"}

logger = logging.getLogger("responses.images")


@dataclass(frozen=True, slots=True)
class ImageFetcher:
    """Fetcher of images. `schemes` are the allowed URL schemes, `internal_hosts` the hosts allowed to have internal addresses."""

    schemes: Sequence[str] = ("https",)
    internal_hosts: Collection[str] = ()
    resolve: Resolve = resolve
    # Trusted certificates; None for the default ones.
    ssl_context: ssl.SSLContext | None = None
    limit_s: float = LIMIT_S
    min_refusal_s: float = MIN_REFUSAL_S
    max_bytes: int = MAX_BYTES
    ports: dict[str, int] = field(default_factory=lambda: dict(PORTS))

    def check(self, url: str) -> httpx2.URL:
        """Parse a URL and check scheme, host and user name, without network access. Raises InvalidImage."""
        try:
            parsed = httpx2.URL(url) if len(url) <= MAX_URL_LENGTH else None
        except (httpx2.InvalidURL, ValueError, TypeError):
            parsed = None
        if parsed is None or not parsed.host or parsed.scheme not in self.ports:
            raise _bad("Expected a data URL, or an https URL of an image.")
        if parsed.scheme not in self.schemes:
            raise _bad(_schemes_message(self.schemes))
        if parsed.userinfo:
            raise _bad("URLs with a user name or a password are not fetched.")
        return parsed

    async def fetch(self, url: str) -> bytes:
        """Fetch the bytes at `url`, without checking for an image. Raises InvalidImage.

        Unknown, internal, unresponsive and slow hosts get the same message: different messages would reveal internal host
        names.
        """
        parsed, started_s = self.check(url), time.monotonic()
        try:
            async with asyncio.timeout(self.limit_s):
                return await self._follow(parsed)
        except (
            Unreachable,
            TimeoutError,
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            OSError,
            UnicodeError,
        ) as error:
            logger.info("image %s: %s", _short(url), _reason(error))
            if isinstance(error, Unreachable | socket.gaierror | UnicodeError):
                await asyncio.sleep(started_s + self.min_refusal_s - time.monotonic())
            raise _failed(url, UNREACHABLE) from error

    async def _follow(self, url: httpx2.URL) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._request(url)
            if isinstance(result, bytes):
                return result
            url = self.check(str(url.join(result)))
        raise _failed(str(url), f"it was redirected more than {MAX_REDIRECTS} times")

    async def _request(self, url: httpx2.URL) -> bytes | str:
        """Return the body, or the redirect location, from the first reachable address of the host."""
        addresses = await self._addresses(url)
        timeout = httpx2.Timeout(self.limit_s, connect=CONNECT_S)
        ssl_context = await asyncio.to_thread(default_ssl_context) if self.ssl_context is None else self.ssl_context
        # Ignore the environment: a proxy would resolve the name again.
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout, verify=ssl_context) as client:
            for address in addresses[:-1]:
                try:
                    return await self._get(client, url, address)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    continue
            return await self._get(client, url, addresses[-1])

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        """Return all addresses of the host if all are public. Raises Unreachable."""
        port = url.port or self.ports[url.scheme]
        is_internal_allowed = is_listed(url.host, port, self.internal_hosts)
        return await resolve_checked(url.host, port, allow_internal=is_internal_allowed, resolve=self.resolve)

    async def _get(self, client: httpx2.AsyncClient, url: httpx2.URL, address: str) -> bytes | str:
        """Send the request to the checked address; the host name is used for TLS and the Host header."""
        request = client.build_request(
            "GET",
            url.copy_with(host=address.partition("%")[0]),
            headers={**_HEADERS, "Host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        response = await client.send(request, stream=True)
        try:
            if response.status_code in _REDIRECT_STATUSES and "location" in response.headers:
                return response.headers["location"]
            return await self._read(url, response)
        finally:
            await response.aclose()

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> bytes:
        if response.status_code != 200:
            raise _failed(str(url), f"its host answered with HTTP status {response.status_code}")
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        # File stores often send a generic type; decoding finds out the real one.
        if (
            media_type
            and not media_type.startswith("image/")
            and media_type not in ("application/octet-stream", "binary/octet-stream")
        ):
            raise _failed(str(url), f"it is no image but '{media_type[:64]}'")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _failed(str(url), "its host sends it compressed, without a request for compression")
        declared = response.headers.get("content-length", "")
        body = bytearray()
        if declared.isascii() and declared.isdigit() and int(declared[:20]) > self.max_bytes:
            raise self._too_large(url)
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > self.max_bytes:
                raise self._too_large(url)
        return bytes(body)

    def _too_large(self, url: httpx2.URL) -> InvalidImage:
        return InvalidImage(f"The image at {_short(str(url))} has more than {self.max_bytes} bytes.", "image_file_too_large")


def _schemes_message(schemes: Sequence[str]) -> str:
    if not schemes:
        return "This server does not fetch images: send them as data URLs."
    return f"This server fetches images from {' and '.join(schemes)} URLs only."


def _bad(message: str) -> InvalidImage:
    return InvalidImage(message, "invalid_image_url")


def _failed(url: str, reason: str) -> InvalidImage:
    return _bad(f"The image at {_short(url)} could not be downloaded: {reason}.")


def _reason(error: Exception) -> str:
    """Describe for the log why the host could not be reached."""
    if isinstance(error, Unreachable):
        return str(error)
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its host name is not known"
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "its host does not answer"
    return "the connection to its host failed"


def _short(url: str) -> str:
    return f"'{url}'" if len(url) <= 200 else f"'{url[:200]}…'"
