"""Download of documents: redirects, limits, refused URLs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from responses_app.outbound_http.download import MAX_REDIRECTS, DownloadFailed, download, url_problem
from tests.support.images.image_server import HOST, ImageServer, moved, run_image_server

DOCUMENT = b"%PDF-1.4 document"
LIMIT = 1000


async def resolve(_host: str, _port: int) -> Sequence[str]:
    return ["127.0.0.1"]


@pytest.fixture(scope="module")
def pages() -> Iterator[ImageServer]:
    with run_image_server() as server:
        server.pages |= {"/a": DOCUMENT, "/long": b"x" * (LIMIT + 1), "/moved": moved("/a"), "/round": moved("/round")}
        server.pages["/inside"] = moved("http://127.0.0.1:1/secret")
        yield server


def fetch(url: str) -> bytes:
    return asyncio.run(download(url, LIMIT, {HOST}, resolve=resolve))


@pytest.mark.parametrize("path", ["/a", "/moved"])
def test_document_is_downloaded_also_behind_a_redirect(pages: ImageServer, path: str) -> None:
    assert fetch(pages.url(path)) == DOCUMENT


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/missing", "HTTP status 404"),
        ("/long", "1,000 bytes"),
        ("/round", f"more than {MAX_REDIRECTS} times"),
        ("/inside", "https URLs only"),
    ],
)
def test_failed_download_has_the_reason(pages: ImageServer, path: str, message: str) -> None:
    with pytest.raises(DownloadFailed, match=message):
        fetch(pages.url(path))


def test_host_with_an_internal_address_is_refused(pages: ImageServer) -> None:
    with pytest.raises(DownloadFailed, match="public internet"):
        asyncio.run(download(pages.url("/a", scheme="https"), LIMIT, resolve=resolve))


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("https://example.com/a.pdf", True),
        (f"http://{HOST}/a.pdf", True),
        ("http://example.com/a.pdf", False),
        ("ftp://example.com/a.pdf", False),
        ("file:///etc/passwd", False),
        ("https://me:secret@example.com/a.pdf", False),
        ("https://", False),
        ("https://example.com/" + "a" * 8192, False),
        ("no url", False),
        (f"https://{'a' * 63}.com/a.pdf", True),
        (f"https://{'a' * 64}.com/a.pdf", False),
        (f"https://{'ü' * 60}.com/a.pdf", False),
        (f"https://{'a.' * 127}/a.pdf", True),
        (f"https://{'a.' * 127}b/a.pdf", False),
        ("https://a..com/a.pdf", False),
    ],
)
def test_urls_that_may_be_downloaded(url: str, is_allowed: bool) -> None:
    assert (url_problem(url, {HOST}) is None) == is_allowed


@pytest.mark.parametrize(
    ("url", "is_allowed"),
    [
        ("http://lan.example:8080/a", True),
        ("http://LAN.example:8080/a", True),
        ("http://lan.example/a", False),
        ("http://plain.example/a", True),
        ("http://[::1]:81/a", True),
        ("http://[::1]:82/a", False),
    ],
)
def test_a_port_of_an_internal_host_counts(url: str, is_allowed: bool) -> None:
    assert (url_problem(url, {"lan.example:8080", "plain.example:80", "[::1]:81"}) is None) == is_allowed
