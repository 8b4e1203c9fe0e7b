"""HTTP server that answers as the search services do, by their public API references, and records requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

KEY = "s3cret-key"
URLS = ("https://docs.example.com/a", "https://evil.example.net/b", "https://example.org/c?x=1")


@dataclass
class RecordedRequest:
    """Request: method, path, query, headers in lower case, and the JSON body."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class SearchService:
    """Services at the paths `/searxng`, `/brave`, `/tavily` and `/exa`.

    The next requests are answered with the statuses of `failures`, with `retry_after` as header. `raw` replaces every body.
    """

    requests: list[RecordedRequest] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    retry_after: str = ""
    raw: bytes | None = None
    port: int = 0

    def url(self, name: str) -> str:
        """Return the address of a service."""
        return f"http://127.0.0.1:{self.port}/{name}"


@contextmanager
def run_search_service() -> Iterator[SearchService]:
    """Run a server on the loopback interface."""
    service = SearchService()

    class SearchServiceHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: dict[str, Any]) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = RecordedRequest(self.command, parts.path, query, headers, body)
            service.requests.append(request)
            status, reply = (service.failures.pop(0), {}) if service.failures else _reply(request)
            data = service.raw if service.raw is not None and status == 200 else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            if service.retry_after:
                self.send_header("Retry-After", service.retry_after)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), SearchServiceHandler)
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _reply(request: RecordedRequest) -> tuple[int, dict[str, Any]]:
    """Return the status and the body for a request: errors as the services send them for a wrong key or a missing format."""
    routes = {
        ("GET", "/searxng/search"): _searxng,
        ("GET", "/brave/web/search"): _brave,
        ("POST", "/tavily/search"): _tavily,
        ("POST", "/exa/search"): _exa,
    }
    route = routes.get((request.method, request.path))
    return (404, {}) if route is None else route(request)


def _searxng(request: RecordedRequest) -> tuple[int, dict[str, Any]]:
    if request.query.get("format") != "json":
        return 403, {}
    results = [
        {
            "url": url,
            "title": f"Title {n}",
            "content": f"<b>Snippet</b> &amp; {n}",
            "engine": "x",
            "publishedDate": "2026-01-02",
        }
        for n, url in enumerate(URLS)
    ]
    return 200, {"query": request.query["q"], "results": results, "answers": [], "unresponsive_engines": []}


def _brave(request: RecordedRequest) -> tuple[int, dict[str, Any]]:
    if request.headers.get("x-subscription-token") != KEY:
        return 422, {"type": "ErrorResponse", "error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}
    if request.query["q"] == "nothing":
        return 200, {"type": "search", "query": {"original": "nothing"}}
    results = [
        {"url": url, "title": f"Title {n}", "description": "<strong>Snippet</strong> &amp;", "extra_snippets": [str(n)]}
        | {"page_age": "2026-01-02"}
        for n, url in enumerate(URLS)
    ]
    return 200, {"type": "search", "query": {"original": request.query["q"]}, "web": {"type": "search", "results": results}}


def _tavily(request: RecordedRequest) -> tuple[int, dict[str, Any]]:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return 401, {"detail": {"error": "Unauthorized: missing or invalid API key."}}
    results = [
        {"url": url, "title": f"Title {n}", "content": f"Snippet & {n}", "score": 0.9, "published_date": "2026-01-02"}
        for n, url in enumerate(URLS)
    ]
    return 200, {"query": request.body["query"], "results": results, "response_time": 0.5}


def _exa(request: RecordedRequest) -> tuple[int, dict[str, Any]]:
    if request.headers.get("x-api-key") != KEY:
        return 401, {"error": "invalid key"}
    results = [
        {"id": url, "url": url, "title": f"Title {n}", "highlights": [f"Snippet & {n}"], "publishedDate": "2026-01-02"}
        for n, url in enumerate(URLS)
    ]
    return 200, {"requestId": "1", "resolvedSearchType": "neural", "results": results}
