"""HTTPS server of pages for tests, with a certificate for its host name and a client that trusts the certificate."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from responses_app.tools.web_search.pages.fetcher import PageFetcher
from tests.support.images.image_server import HOST, ImageServer, certificate, run_image_server


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
