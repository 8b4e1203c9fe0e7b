"""Fetches a picture from the web: from public addresses, within limits, and from the very address that was checked."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cache

import httpx2

from responses_app.images.addresses import is_public
from responses_app.images.decode import MOST_BYTES, InvalidImage

LIMIT_S = 20.0  # For all of it: names, redirects and bytes.
CONNECT_S = 5.0
# A host that is not asked is refused no sooner: an answer at once would tell an internal name from one that does not exist.
LEAST_REFUSAL_S = 1.0
REDIRECTS = 3
MOST_URL = 8192
PORTS = {"https": 443, "http": 80}
UNREACHABLE = "its host is not on the public internet, cannot be reached or does not answer in time"
_MOVED = frozenset({301, 302, 303, 307, 308})
# Not compressed: a small answer that becomes a large one is no picture's way. Some hosts refuse who does not say his name.
_HEADERS = {"Accept": "image/png,image/jpeg,image/webp,image/gif", "Accept-Encoding": "identity", "User-Agent": "Verbatim"}

logger = logging.getLogger("responses.images")

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a host name, in figures. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


class Unreachable(Exception):
    """A host that is not asked: it has no address, or an internal one. The message is for the log alone."""


@dataclass(frozen=True, slots=True)
class ImageFetcher:
    """What may be fetched. `schemes` are those of URLs that are taken, `inside` the hosts that may have internal addresses."""

    schemes: Sequence[str] = ("https",)
    inside: Collection[str] = ()
    resolve: Resolve = resolve
    # Certificates that are trusted; the usual ones unless told otherwise.
    trust: ssl.SSLContext | None = None
    limit: float = LIMIT_S
    least_refusal: float = LEAST_REFUSAL_S
    most: int = MOST_BYTES
    ports: dict[str, int] = field(default_factory=lambda: dict(PORTS))

    def check(self, url: str) -> httpx2.URL:
        """The URL, which is one that may be fetched as far as can be told without asking anybody. Raises BadImage."""
        try:
            parsed = httpx2.URL(url) if len(url) <= MOST_URL else None
        except (httpx2.InvalidURL, ValueError, TypeError):
            parsed = None
        if parsed is None or not parsed.host or parsed.scheme not in self.ports:
            raise _bad("Expected a data URL, or an https URL of an image.")
        if parsed.scheme not in self.schemes:
            raise _bad(_only(self.schemes))
        if parsed.userinfo:
            raise _bad("URLs with a user name or a password are not fetched.")
        return parsed

    async def fetch(self, url: str) -> bytes:
        """Fetch the bytes at `url`, which may be no picture at all. Raises BadImage.

        Hosts that are unknown, internal, silent or slow have one message: several would make a list of internal host names.
        """
        parsed, began = self.check(url), time.monotonic()
        try:
            async with asyncio.timeout(self.limit):
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
                await asyncio.sleep(began + self.least_refusal - time.monotonic())
            raise _failed(url, UNREACHABLE) from error

    async def _follow(self, url: httpx2.URL) -> bytes:
        for _ in range(REDIRECTS + 1):
            found = await self._ask(url)
            if isinstance(found, bytes):
                return found
            url = self.check(str(url.join(found)))
        raise _failed(str(url), f"it was redirected more than {REDIRECTS} times")

    async def _ask(self, url: httpx2.URL) -> bytes | str:
        """The bytes, or where they have moved to; from the first of the host's addresses that can be reached."""
        addresses = await self._addresses(url)
        timeout = httpx2.Timeout(self.limit, connect=CONNECT_S)
        trust = await asyncio.to_thread(_usual) if self.trust is None else self.trust
        # Nothing of the environment: a proxy would resolve the name again.
        async with httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=timeout, verify=trust) as client:
            for address in addresses[:-1]:
                try:
                    return await self._get(client, url, address)
                except (httpx2.ConnectError, httpx2.ConnectTimeout):
                    continue
            return await self._get(client, url, addresses[-1])

    async def _addresses(self, url: httpx2.URL) -> Sequence[str]:
        """All addresses of the host, if all are public. Raises Unreachable."""
        addresses = list(dict.fromkeys(await self.resolve(url.host, url.port or self.ports[url.scheme])))
        if not addresses:
            raise Unreachable("its host has no address")
        if url.host.lower() not in self.inside and not all(map(is_public, addresses)):
            raise Unreachable(f"its host '{url.host}' is not on the public internet")
        return addresses

    async def _get(self, client: httpx2.AsyncClient, url: httpx2.URL, address: str) -> bytes | str:
        """Ask the address that was checked; the name is for the certificate and the host's own use."""
        request = client.build_request(
            "GET",
            url.copy_with(host=address.partition("%")[0]),
            headers={**_HEADERS, "Host": url.netloc.decode("ascii")},
            extensions={"sni_hostname": url.raw_host.decode("ascii")},
        )
        response = await client.send(request, stream=True)
        try:
            if response.status_code in _MOVED and "location" in response.headers:
                return response.headers["location"]
            return await self._read(url, response)
        finally:
            await response.aclose()

    async def _read(self, url: httpx2.URL, response: httpx2.Response) -> bytes:
        if response.status_code != 200:
            raise _failed(str(url), f"its host answered with HTTP status {response.status_code}")
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Stores of files often do not know what they keep; what it is shows when it is decoded.
        if kind and not kind.startswith("image/") and kind not in ("application/octet-stream", "binary/octet-stream"):
            raise _failed(str(url), f"it is no image but '{kind[:64]}'")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _failed(str(url), "its host sends it compressed, which was not asked for")
        said = response.headers.get("content-length", "")
        read = bytearray()
        if said.isascii() and said.isdigit() and int(said[:20]) > self.most:
            raise self._too_large(url)
        async for part in response.aiter_raw():
            read += part
            if len(read) > self.most:
                raise self._too_large(url)
        return bytes(read)

    def _too_large(self, url: httpx2.URL) -> InvalidImage:
        return InvalidImage(f"The image at {_short(str(url))} has more than {self.most} bytes.", "image_file_too_large")


def _only(schemes: Sequence[str]) -> str:
    if not schemes:
        return "This server does not fetch images: send them as data URLs."
    return f"This server fetches images from {' and '.join(schemes)} URLs only."


@cache
def _usual() -> ssl.SSLContext:
    """Read once: it takes milliseconds."""
    return httpx2.create_ssl_context(trust_env=False)


def _bad(message: str) -> InvalidImage:
    return InvalidImage(message, "invalid_image_url")


def _failed(url: str, reason: str) -> InvalidImage:
    return _bad(f"The image at {_short(url)} could not be downloaded: {reason}.")


def _reason(error: Exception) -> str:
    """Say for the log why a host could not be asked."""
    if isinstance(error, Unreachable):
        return str(error)
    if isinstance(error, socket.gaierror | UnicodeError):
        return "its host name is not known"
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "its host does not answer"
    return "the connection to its host failed"


def _short(url: str) -> str:
    return f"'{url}'" if len(url) <= 200 else f"'{url[:200]}…'"
