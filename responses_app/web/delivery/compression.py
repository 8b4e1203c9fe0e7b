"""Compression of pages and static files with gzip. Streams, the API and pages that show a secret are never compressed.

An attacker who gets text into a page could guess a secret beside it from the length of the compressed page (BREACH). Pages therefore
have no secret but the CSRF token, which Django masks anew in each page; Django also adds random bytes to each compressed page. The page
that shows a new key has `Cache-Control: no-transform`, which is kept here and by proxies.
"""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterable
from functools import lru_cache
from typing import Final, cast

from asgiref.sync import sync_to_async
from django.http import FileResponse, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.gzip import GZipMiddleware
from django.utils.cache import patch_vary_headers

PAGE: Final = "text/html"
STATIC: Final = ("text/css", "text/javascript", "application/javascript", "image/svg+xml")
# Static files are compressed once; their number is that of the package.
MAX_STATIC_FILES: Final = 256


class PageCompression(GZipMiddleware):
    """GZipMiddleware of Django for complete pages that do not forbid it with `no-transform`."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress a page if the browser accepts gzip."""
        headers = response.headers
        is_page = not response.streaming and headers.get("Content-Type", "").startswith(PAGE)
        if not is_page or "no-transform" in headers.get("Cache-Control", ""):
            return response
        return super().process_response(request, cast(HttpResponse, response))


async def compress_static(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    """Return a static text file compressed, if the browser accepts gzip; any other response unchanged."""
    if not isinstance(response, FileResponse) or not response.headers["Content-Type"].startswith(STATIC):
        return response
    patch_vary_headers(response, ("Accept-Encoding",))
    if "gzip" not in request.headers.get("Accept-Encoding", ""):
        return response
    chunks: AsyncIterable[bytes] = response
    content = await sync_to_async(_compressed, thread_sensitive=False)(b"".join([chunk async for chunk in chunks]))
    response.close()
    compressed = HttpResponse(content, headers=dict(response.headers))
    compressed.headers["Content-Encoding"] = "gzip"
    compressed.headers["Content-Length"] = str(len(content))
    return compressed


@lru_cache(maxsize=MAX_STATIC_FILES)
def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
