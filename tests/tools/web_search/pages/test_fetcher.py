"""Page fetcher: redirects, internal addresses, domains, types, sizes and times."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from responses_app.tools.web_search.domains import DomainFilter
from responses_app.tools.web_search.pages.fetcher import UNREACHABLE, FetchedPage, PageFetcher
from responses_app.tools.web_search.pages.page import PageFailed
from tests.support.images.image_server import HOST, ImageServer, answer, certificate, moved, run_image_server


@dataclass(frozen=True)
class PageServer:
    """Server, and the certificates that a client must trust."""

    server: ImageServer
    trusted: ssl.SSLContext

    def url(self, path: str, host: str = HOST, scheme: str = "https") -> str:
        """Return the URL of a path."""
        return self.server.url(path, host, scheme)

    def fetcher(self, **fields: object) -> PageFetcher:
        """Create a fetcher that treats the server as a host of the operator."""

        async def resolve(host: str, port: int) -> Sequence[str]:
            return ["127.0.0.1"]

        known = PageFetcher(frozenset({HOST}), resolve=resolve, ssl_context=self.trusted, min_refusal_s=0)
        return replace(known, **fields)  # type: ignore[arg-type]


@contextmanager
def run_page_server(folder: Path) -> Iterator[PageServer]:
    """Run a server on the loopback interface; `folder` gets the certificate."""
    own_certificate, trusted = certificate(folder)
    with run_image_server(own_certificate) as server:
        yield PageServer(server, trusted)


TEXT = b"<p>Tea</p>"


def page(body: bytes = TEXT, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: answer(handler, body, 200, **{"content_type": "text/html; charset=latin-1", **headers})


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with run_page_server(tmp_path_factory.mktemp("certificate")) as server:
        server.server.pages["/tea"] = page()
        yield server


def fetch(pages: PageServer, path: str, **fields: Any) -> FetchedPage:
    return asyncio.run(pages.fetcher(**fields).fetch(path if "://" in path else pages.url(path)))


def test_page_has_type_charset_and_bytes(pages: PageServer) -> None:
    assert fetch(pages, "/tea") == FetchedPage(pages.url("/tea"), "text/html", "latin-1", TEXT)


def test_redirects_are_followed(pages: PageServer) -> None:
    pages.server.pages |= {"/a": moved("/b"), "/b": moved(pages.url("/tea"), 308)}
    assert fetch(pages, "/a").url == pages.url("/tea")


def test_endless_redirects_end(pages: PageServer) -> None:
    pages.server.pages["/loop"] = moved("/loop")
    with pytest.raises(PageFailed, match="more than 5 times"):
        fetch(pages, "/loop")


def test_redirect_to_an_internal_address_is_refused(pages: PageServer) -> None:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"] if host == HOST else ["169.254.169.254"]

    pages.server.pages["/out"] = moved("https://metadata.example/latest")
    with pytest.raises(PageFailed) as caught:
        fetch(pages, "/out", resolve=resolve)
    assert str(caught.value) == UNREACHABLE


def test_redirect_to_a_domain_that_is_not_allowed_is_refused(pages: PageServer) -> None:
    pages.server.pages["/away"] = moved("https://elsewhere.example/")
    with pytest.raises(PageFailed, match=r"does not allow pages of 'elsewhere\.example'"):
        fetch(pages, "/away", domains=DomainFilter.of([HOST]))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433"])
def test_internal_host_is_refused(pages: PageServer, host: str) -> None:
    pages.server.requests.clear()
    with pytest.raises(PageFailed):
        fetch(pages, pages.url("/tea", host=host), internal_hosts=frozenset())
    assert pages.server.requests == []


def test_http_becomes_https_on_the_public_internet(pages: PageServer) -> None:
    fetcher = pages.fetcher(internal_hosts=frozenset())
    assert fetcher._check(f"http://{HOST}/tea").scheme == "https"
    assert pages.fetcher()._check(f"http://{HOST}/tea").scheme == "http"


@pytest.mark.parametrize("url", ["ftp://a.example/", "file:///etc/passwd", "https://", "https://user:pw@a.example/", "data:,a"])
def test_other_urls_are_refused(pages: PageServer, url: str) -> None:
    with pytest.raises(PageFailed, match="not a valid http or https URL"):
        fetch(pages, url)


@pytest.mark.parametrize(
    ("served", "message"),
    [
        (page(content_type="image/png"), "The type 'image/png' of the page is not supported"),
        (page(content_type="obey me: now/please"), "^The type of the page is not supported"),
        (page(content_encoding="gzip"), "compressed"),
        (page(b"x" * 2000), "more than 1,000 bytes"),
        (page(b"x" * 2000, content_length=""), "more than 1,000 bytes"),
        (lambda handler: handler.send_error(500), "HTTP status 500"),
        (lambda handler: handler.wfile.write(b"nonsense"), "cannot be reached"),
    ],
)
def test_unreadable_page_names_the_reason(pages: PageServer, served: Any, message: str) -> None:
    pages.server.pages["/odd"] = served
    with pytest.raises(PageFailed, match=message):
        fetch(pages, "/odd", max_bytes=1000)


def test_slow_page_is_given_up(pages: PageServer) -> None:
    def stall(handler: BaseHTTPRequestHandler) -> None:
        answer(handler, b"", content_type="text/html", content_length="100")
        handler.rfile.read(1)

    pages.server.pages["/slow"] = stall
    with pytest.raises(PageFailed, match="cannot be reached"):
        fetch(pages, "/slow", limit_s=0.3)
