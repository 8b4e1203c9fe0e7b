"""Search services over HTTP: requests and results of each, failures, the further attempt, and no key in any message."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.test import override_settings

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING
from responses_app.server.doctor.tools import check_web_search
from responses_app.tools.web_search.backends import apis
from responses_app.tools.web_search.backends.base import SearchContext, SearchFailed, SearchResult, UserLocation
from responses_app.tools.web_search.backends.http import MAX_PAUSE_S, HttpSearchBackend
from responses_app.tools.web_search.domains import DomainFilter
from tests.support.http_server import SilentHandler, http_server, serving

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

    class SearchServiceHandler(SilentHandler):
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

    with serving(http_server(SearchServiceHandler)) as server:
        service.port = server.server_port
        yield service


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


SERVICES = ["searxng", "brave", "tavily", "exa"]
LOCATION = UserLocation("Berlin", "Land Berlin", "DE", "Europe/Berlin")


@pytest.fixture
def service() -> Iterator[SearchService]:
    with run_search_service() as running:
        yield running


class Pauses(list[float]):
    """Recorded pauses, which take no time."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


def search(service: SearchService, name: str, key: str = KEY, query: str = "tea", **context: Any) -> list[SearchResult]:
    backend = HttpSearchBackend(apis.APIS[name], service.url(name), key, pause=context.pop("pause", Pauses()))
    return asyncio.run(backend.search(query, SearchContext(**context)))


@pytest.mark.parametrize("name", SERVICES)
def test_results_have_url_title_snippet_and_date(service: SearchService, name: str) -> None:
    results = search(service, name)
    assert results == [SearchResult(url, f"Title {n}", f"Snippet & {n}", "2026-01-02") for n, url in enumerate(URLS)]


@pytest.mark.parametrize("name", SERVICES)
def test_results_of_other_domains_are_dropped(service: SearchService, name: str) -> None:
    allowed = DomainFilter.of(["Example.com", "example.org"])
    assert [one.url for one in search(service, name, domains=allowed)] == [URLS[0], URLS[2]]
    blocked = DomainFilter.of(None, ["example.net"])
    assert [one.url for one in search(service, name, domains=blocked)] == [URLS[0], URLS[2]]


@pytest.mark.parametrize("name", SERVICES)
def test_number_of_results_is_limited(service: SearchService, name: str) -> None:
    assert len(search(service, name, max_results=2)) == 2


@pytest.mark.parametrize(
    ("name", "part", "expected"),
    [
        ("searxng", "query", {"q": "tea (site:a.example OR site:b.example)", "format": "json"}),
        ("brave", "query", {"q": "tea (site:a.example OR site:b.example)", "count": "5"}),
        ("brave", "headers", {"x-loc-city": "Berlin", "x-loc-country": "DE", "x-loc-timezone": "Europe/Berlin"}),
        ("tavily", "body", {"query": "tea", "max_results": 5, "include_domains": ["a.example", "b.example"]}),
        ("exa", "body", {"query": "tea", "numResults": 5, "includeDomains": ["a.example", "b.example"], "userLocation": "DE"}),
    ],
)
def test_request_has_the_domains_the_number_and_the_location(
    service: SearchService, name: str, part: str, expected: dict[str, Any]
) -> None:
    search(service, name, max_results=5, domains=DomainFilter.of(["a.example", "b.example"]), location=LOCATION)
    assert expected.items() <= getattr(service.requests[0], part).items()


@pytest.mark.parametrize(
    ("allowed", "blocked", "query"),
    [
        (["a.example/blog", "a.example/news"], [], "tea site:a.example"),
        ([], ["a.example/blog", "b.example"], "tea -site:b.example"),
    ],
)
def test_path_of_a_domain_is_not_sent(service: SearchService, allowed: list[str], blocked: list[str], query: str) -> None:
    search(service, "brave", domains=DomainFilter.of(allowed, blocked))
    assert service.requests[0].query["q"] == query


def test_location_that_no_header_can_carry_is_not_sent(service: SearchService) -> None:
    assert search(service, "brave", location=UserLocation(city="Zürich\r\nX-A: b", country="CH"))
    headers = service.requests[0].headers
    assert (headers.get("x-loc-city"), headers["x-loc-country"]) == (None, "CH")


def test_response_without_matches_has_no_results(service: SearchService) -> None:
    assert search(service, "brave", query="nothing") == []


@pytest.mark.parametrize("status", [429, 500, 503])
def test_temporary_failure_is_attempted_again(service: SearchService, status: int) -> None:
    service.failures, service.retry_after = [status], "3"
    pauses = Pauses()
    assert len(search(service, "searxng", pause=pauses)) == 3
    assert (len(service.requests), pauses) == (2, [3.0])


def test_long_retry_after_is_bounded(service: SearchService) -> None:
    service.failures, service.retry_after = [429], "3600"
    pauses = Pauses()
    search(service, "searxng", pause=pauses)
    assert pauses == [MAX_PAUSE_S]


@pytest.mark.parametrize(("failures", "requests"), [([429, 503], 2), ([400], 1), ([302], 1)])
def test_failure_names_the_status(service: SearchService, failures: list[int], requests: int) -> None:
    service.failures = list(failures)
    hint = ".*RESPONSES_WEB_SEARCH to the address" if failures == [302] else ""
    with pytest.raises(SearchFailed, match=f"SearXNG answered with HTTP status {failures[-1]}{hint}"):
        search(service, "searxng")
    assert len(service.requests) == requests


@pytest.mark.parametrize("name", ["brave", "tavily", "exa"])
def test_refused_key_is_not_in_the_message(service: SearchService, name: str) -> None:
    with pytest.raises(SearchFailed, match="HTTP status") as caught:
        search(service, name, key="another-s3cret")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("name", ["brave", "tavily", "exa"])
def test_key_is_in_no_log(service: SearchService, name: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert search(service, name)
    assert KEY not in caplog.text


@pytest.mark.parametrize("raw", [b"", b"<html>", b"[]", b'{"results": 3}', b'{"results": [3]}', b'{"results": [{"url": 3}]}'])
def test_broken_answer_is_a_failure(service: SearchService, raw: bytes) -> None:
    service.raw = raw
    with pytest.raises(SearchFailed, match="not a list of results"):
        search(service, "tavily")


def test_service_that_does_not_answer_is_a_failure(service: SearchService) -> None:
    closed = HttpSearchBackend(apis.APIS["searxng"], "http://127.0.0.1:9", pause=Pauses())
    with pytest.raises(SearchFailed, match="does not answer"):
        asyncio.run(closed.search("tea", SearchContext()))


@pytest.mark.parametrize(
    ("key", "raw", "expected", "says"),
    [
        (KEY, None, OK, "found 3 pages"),
        (KEY, b'{"web": {"results": []}}', WARNING, "found 0 pages"),
        (KEY, b"<html>", FAILED, "not a list of results"),
        ("another", None, FAILED, "HTTP status 422"),
    ],
)
def test_doctor_searches_once(key: str, raw: bytes | None, expected: str, says: str) -> None:
    with run_search_service() as service:
        service.raw = raw
        with override_settings(RESPONSES_WEB_SEARCH={"backend": "brave", "url": service.url("brave"), "key": key}):
            ((status, message),) = check_web_search()
    assert (status, says in message, key in message) == (expected, True, False), message
    assert len(service.requests) == 1


def test_doctor_needs_no_service() -> None:
    with override_settings(RESPONSES_WEB_SEARCH={}):
        ((status, _),) = check_web_search()
    assert status == SKIPPED
