"""Image fetching over HTTP: public addresses only, within limits, without a second name resolution after the check."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import httpx2

from responses_app.images.decode import MAX_BYTES, InvalidImage
from responses_app.outbound_http.addresses import Resolve, Unreachable, resolve
from responses_app.outbound_http.download import CONNECT_S, MAX_REDIRECTS, MAX_URL_LENGTH, REQUEST_ERRORS, UNREACHABLE
from responses_app.outbound_http.pinned_transport import (
    MIN_REFUSAL_S,
    PORTS,
    AddressRefused,
    BodyLimits,
    PinnedTransport,
    ResponseRefused,
    ResponseTooLong,
)

LIMIT_S = 20.0  # Time limit of a fetch: name resolution, redirects and body.
_GENERIC_TYPES = ("application/octet-stream", "binary/octet-stream")
# Some hosts require a User-Agent.
_HEADERS = {"Accept": "image/png,image/jpeg,image/webp,image/gif", "User-Agent": "Verbatim"}

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

    def check(self, url: str) -> httpx2.URL:
        """Parse a URL and check scheme, host and user name, without network access. Raises InvalidImage."""
        try:
            parsed = httpx2.URL(url) if len(url) <= MAX_URL_LENGTH else None
        except (httpx2.InvalidURL, ValueError, TypeError):
            parsed = None
        if parsed is None or not parsed.host or parsed.scheme not in PORTS:
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
        parsed = self.check(url)
        try:
            async with asyncio.timeout(self.limit_s):
                return await self._follow(parsed)
        except ResponseTooLong as error:
            message = f"The image at {_short(url)} has more than {self.max_bytes} bytes."
            raise InvalidImage(message, "image_file_too_large") from error
        except ResponseRefused as error:
            raise _failed(url, str(error)) from error
        except REQUEST_ERRORS as error:
            logger.info("image %s: %s", _short(url), _reason(error))
            raise _failed(url, UNREACHABLE) from error

    async def _follow(self, url: httpx2.URL) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            result = await self._request(url)
            if isinstance(result, bytes):
                return result
            url = self.check(str(url.join(result)))
        raise _failed(str(url), f"it was redirected more than {MAX_REDIRECTS} times")

    async def _request(self, url: httpx2.URL) -> bytes | str:
        """Return the body, or the redirect location. A transport serves a single origin, so that each hop has its own."""
        transport = PinnedTransport(
            self.internal_hosts,
            allow_http="http" in self.schemes,
            resolve=self.resolve,
            ssl_context=self.ssl_context,
            limits=BodyLimits(self.max_bytes, self.max_bytes),
            min_refusal_s=self.min_refusal_s,
        )
        timeout = httpx2.Timeout(self.limit_s, connect=CONNECT_S)
        async with (
            httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout) as client,
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            if response.has_redirect_location:
                return str(response.headers["location"])
            if response.status_code != httpx2.codes.OK:
                raise _failed(str(url), f"its host answered with HTTP status {response.status_code}")
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            # File stores often send a generic type; decoding finds out the real one.
            if media_type and not media_type.startswith("image/") and media_type not in _GENERIC_TYPES:
                raise _failed(str(url), f"it is no image but '{media_type[:64]}'")
            return await response.aread()


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
    if isinstance(error, AddressRefused):
        return str(error.__cause__) if isinstance(error.__cause__, Unreachable) else "its host name is not known"
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return "its host does not answer"
    return "the connection to its host failed"


def _short(url: str) -> str:
    return f"'{url}'" if len(url) <= 200 else f"'{url[:200]}…'"
