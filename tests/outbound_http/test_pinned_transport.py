"""Transport to checked addresses: refused URLs and addresses, rebinding, TLS names, redirects, proxies, limits of bodies."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from responses_app.outbound_http.pinned_transport import AddressRefused, BodyLimits, PinnedTransport, ResponseRefused
from tests.support.images.image_server import HOST, ImageServer, answer, certificate, moved, run_image_server

PAGE = b"page"


class ChangingResolver:
    """Resolver that returns the next of `answers` at each call, and the last from then on."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.lookups = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookups += 1
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture(scope="module")
def pages() -> Iterator[ImageServer]:
    with run_image_server() as server:
        server.pages["/a"] = PAGE
        yield server


def transport(resolve: Any = None, **fields: Any) -> PinnedTransport:
    """Create a transport that treats the test server as a host of the operator."""
    known = {"internal_hosts": {HOST}, "resolve": resolve or ChangingResolver(["127.0.0.1"]), "min_refusal_s": 0}
    return PinnedTransport(**{**known, **fields})


async def get(transport: PinnedTransport, *urls: str, **options: Any) -> list[httpx2.Response]:
    async with httpx2.AsyncClient(transport=transport, trust_env=False, timeout=5, **options) as client:
        return [await client.get(url) for url in urls]


def fetch(url: str, resolve: Any = None, **fields: Any) -> httpx2.Response:
    return asyncio.run(get(transport(resolve, **fields), url))[0]


def test_request_connects_to_the_checked_address_with_the_host_name(pages: ImageServer) -> None:
    pages.requests.clear()
    resolver = ChangingResolver(["127.0.0.1"])
    assert fetch(pages.url("/a"), resolver).content == PAGE
    assert (resolver.lookups, pages.requests) == (1, [("/a", f"{HOST}:{pages.port}")])


def test_host_with_port_of_the_allow_list_is_internal_at_that_port_only(pages: ImageServer) -> None:
    assert fetch(pages.url("/a"), internal_hosts={f"{HOST}:{pages.port}"}).content == PAGE
    with pytest.raises(AddressRefused):
        fetch(pages.url("/a"), internal_hosts={f"{HOST}:1"})


def test_any_host_is_internal_for_the_operator(pages: ImageServer) -> None:
    assert fetch(pages.url("/a", host="127.0.0.1"), internal_hosts=(), allow_internal=True).content == PAGE


INTERNAL_ADDRESSES = [
    *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),  # noqa: S104
    *("::1", "::", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "64:ff9b::7f00:1"),
    *("2002:7f00:1::1", "255.255.255.255", "168.63.129.16"),
]


@pytest.mark.parametrize("address", INTERNAL_ADDRESSES)
@pytest.mark.parametrize("others", [[], ["93.184.215.14"]], ids=["alone", "beside a public address"])
def test_internal_address_gets_no_request(pages: ImageServer, address: str, others: list[str]) -> None:
    pages.requests.clear()
    with pytest.raises(AddressRefused, match="not on the public internet, or has no address"):
        fetch(f"https://inside.example:{pages.port}/a", ChangingResolver([*others, address]))
    assert pages.requests == []


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "[::1]", "[::ffff:7f00:1]", "localhost"]
)
def test_loopback_in_other_notations_gets_no_request(pages: ImageServer, host: str) -> None:
    pages.requests.clear()
    refusing = PinnedTransport(min_refusal_s=0)
    with pytest.raises((AddressRefused, httpx2.InvalidURL)):
        asyncio.run(get(refusing, f"https://{host}:{pages.port}/a"))
    assert pages.requests == []


def test_rebinding_to_an_internal_address_is_refused_at_the_next_request(pages: ImageServer) -> None:
    pages.requests.clear()
    resolver = ChangingResolver(["93.184.215.14"], ["127.0.0.1"])
    url = httpx2.URL(f"https://rebinding.example:{pages.port}/a")
    pinned = transport(resolver, internal_hosts=())

    async def check() -> list[str]:
        try:
            first = await pinned._checked(url)
            with pytest.raises(AddressRefused):
                await get(pinned, str(url))
            return first
        finally:
            await pinned.aclose()

    assert asyncio.run(check()) == ["93.184.215.14"]
    assert (resolver.lookups, pages.requests) == (2, [])


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("http://public.example/a", id="http to a public host"),
        pytest.param("https://user:password@public.example/a", id="user info"),
        pytest.param("ftp://public.example/a", id="scheme"),
    ],
)
def test_url_is_refused(url: str) -> None:
    resolver = ChangingResolver(["93.184.215.14"])
    with pytest.raises((AddressRefused, httpx2.UnsupportedProtocol)):
        fetch(url, resolver)
    assert resolver.lookups == 0


def test_names_that_cannot_be_resolved_get_the_same_message_as_internal_hosts() -> None:
    async def fail(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    messages = set()
    for resolver in (fail, ChangingResolver([]), ChangingResolver(["10.0.0.1"])):
        with pytest.raises(AddressRefused) as caught:
            fetch("https://inside.example/a", resolver)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_redirect_is_not_followed_and_another_origin_is_refused(pages: ImageServer) -> None:
    pages.pages["/to"] = moved("http://169.254.169.254/latest/meta-data")
    assert fetch(pages.url("/to")).status_code == 302
    with pytest.raises(AddressRefused):
        asyncio.run(get(transport(), pages.url("/to"), follow_redirects=True))
    with pytest.raises(AddressRefused):
        asyncio.run(
            get(transport(internal_hosts={HOST, "other.example"}), pages.url("/a"), pages.url("/a", host="other.example"))
        )


def test_proxies_of_the_environment_are_ignored(pages: ImageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert fetch(pages.url("/a")).content == PAGE


def test_certificate_must_be_that_of_the_host_name(tmp_path: Path) -> None:
    server, trust = certificate(tmp_path)
    with run_image_server(server) as here:
        here.pages["/a"] = PAGE
        assert fetch(here.url("/a", scheme="https"), ssl_context=trust).content == PAGE
        other = here.url("/a", host="other.example", scheme="https")
        with pytest.raises(httpx2.ConnectError):
            fetch(other, ssl_context=trust, internal_hosts={"other.example"})


def test_next_address_is_tried_where_a_connection_fails(pages: ImageServer) -> None:
    assert fetch(pages.url("/a"), ChangingResolver(["127.0.0.2", "127.0.0.1"])).content == PAGE


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        pytest.param({}, b"x" * 101, id="declared length"),
        pytest.param({"content_length": ""}, b"x" * 101, id="no declared length"),
        pytest.param({"content_length": "9" * 15}, b"x", id="absurd length"),
        pytest.param({"content_encoding": "gzip"}, b"x", id="compressed"),
        pytest.param({"content_type": "text/event-stream", "content_length": ""}, b"x" * 1001, id="stream of events"),
    ],
)
def test_long_or_compressed_response_is_refused(pages: ImageServer, headers: Any, body: bytes) -> None:
    pages.pages["/long"] = lambda handler: answer(handler, body, **headers)
    with pytest.raises(ResponseRefused):
        fetch(pages.url("/long"), limits=BodyLimits(body=100, stream=1000))


def test_stream_of_events_may_be_longer_than_a_body(pages: ImageServer) -> None:
    pages.pages["/events"] = lambda handler: answer(handler, b"x" * 1000, content_type="text/event-stream")
    assert len(fetch(pages.url("/events"), limits=BodyLimits(body=100, stream=1000)).content) == 1000
