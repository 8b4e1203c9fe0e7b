"""Fetching images: allowed addresses, limits, and error messages."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from responses_app.images.decode import InvalidImage
from responses_app.images.fetch import ImageFetcher
from responses_app.outbound_http.download import MAX_REDIRECTS
from tests.support.images.image_server import HOST, ImageServer, answer, certificate, dripping, moved, run_image_server

CANNOT = "its host is not on the public internet, cannot be reached or does not answer in time"
PICTURE = b"\x89PNG and so on"


class FakeResolver:
    """Resolver with the given names; records the requested names."""

    def __init__(self, **names: Sequence[str]) -> None:
        self.names = {HOST: ["127.0.0.1"], **{name.replace("_", "."): addresses for name, addresses in names.items()}}
        self.lookups: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.lookups.append(host)
        if host not in self.names:
            raise socket.gaierror(-2, "Name or service not known")
        return self.names[host]


@pytest.fixture(scope="module")
def here() -> Iterator[ImageServer]:
    with run_image_server() as here:
        yield here


def web(names: FakeResolver | None = None, **fields: Any) -> ImageFetcher:
    """Create a fetcher that allows http, and treats the test server as public."""
    return ImageFetcher(
        **{
            "schemes": ("https", "http"),
            "internal_hosts": {HOST},
            "resolve": names or FakeResolver(),
            "min_refusal_s": 0,
            **fields,
        }
    )


def fetched(url: str, **fields: Any) -> bytes:
    return asyncio.run(web(**fields).fetch(url))


def refused(url: str, words: str, code: str = "invalid_image_url", **fields: Any) -> None:
    with pytest.raises(InvalidImage, match=words) as caught:
        fetched(url, **fields)
    assert caught.value.code == code


def test_fetch_connects_to_the_checked_address_with_the_host_name(here: ImageServer) -> None:
    here.pages["/a.png?b=c"] = PICTURE
    here.requests.clear()
    names = FakeResolver()
    # Only this resolver knows the name, and it is called once, so the checked address is the connected one.
    assert fetched(here.url("/a.png?b=c"), names=names) == PICTURE
    assert names.lookups == [HOST]
    assert here.requests == [("/a.png?b=c", f"{HOST}:{here.port}")]


def test_a_certificate_must_be_that_of_the_name(tmp_path: Path) -> None:
    server, trust = certificate(tmp_path)
    with run_image_server(server) as here:
        here.pages["/a"] = PICTURE
        names = FakeResolver(other_example=["127.0.0.1"])
        assert fetched(here.url("/a", scheme="https"), names=names, ssl_context=trust) == PICTURE
        refused(here.url("/a", scheme="https"), CANNOT, names=names)
        other = here.url("/a", host="other.example", scheme="https")
        refused(other, CANNOT, names=names, ssl_context=trust, internal_hosts={"other.example"})


@pytest.mark.parametrize(
    "addresses", [["10.0.0.1"], ["127.0.0.1"], ["93.184.215.14", "192.168.0.1"], ["::1"], ["::ffff:7f00:1"]]
)
def test_an_internal_address_is_never_asked(here: ImageServer, addresses: list[str]) -> None:
    here.requests.clear()
    url = here.url("/a", host="inside.example")
    refused(url, CANNOT, names=FakeResolver(inside_example=addresses))
    assert here.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "inside.example", "[::1]"])
def test_an_internal_address_is_not_asked_by_redirect_either(here: ImageServer, host: str) -> None:
    here.pages["/to"] = moved(here.url("/b", host=host))
    names = FakeResolver(inside_example=["127.0.0.1"], **{"127_0_0_1": ["127.0.0.1"], "::1": ["::1"]})
    here.requests.clear()
    refused(here.url("/to"), "not on the public internet", names=names)
    assert len(here.requests) == 1


def test_redirects_are_followed_a_few_times(here: ImageServer) -> None:
    for number in range(MAX_REDIRECTS + 1):
        here.pages[f"/r{number}"] = moved(f"/r{number + 1}" if number % 2 else here.url(f"/r{number + 1}"), 301 + number % 2)
    here.pages[f"/r{MAX_REDIRECTS + 1}"] = PICTURE
    assert fetched(here.url("/r1")) == PICTURE
    refused(here.url("/r0"), f"redirected more than {MAX_REDIRECTS} times")
    here.pages["/loop"] = moved("/loop")
    refused(here.url("/loop"), "redirected more than")
    here.pages["/file"] = moved("file:///etc/passwd")
    refused(here.url("/file"), "https URL")


def test_a_redirect_cannot_leave_https(tmp_path: Path) -> None:
    server, trust = certificate(tmp_path)
    with run_image_server(server) as here:
        here.pages["/a"] = moved(here.url("/b"))
        refused(here.url("/a", scheme="https"), "https URLs only", schemes=("https",), ssl_context=trust)


@pytest.mark.parametrize(
    ("headers", "body", "words", "code"),
    [
        ({"content_type": "text/html; charset=utf-8"}, b"<html>", "it is no image but 'text/html'", "invalid_image_url"),
        ({"content_encoding": "gzip"}, b"x", "compressed", "invalid_image_url"),
        ({}, b"x" * 101, "more than 100 bytes", "image_file_too_large"),
        ({"content_length": ""}, b"x" * 101, "more than 100 bytes", "image_file_too_large"),
        ({"content_length": "9" * 15}, b"x", "more than 100 bytes", "image_file_too_large"),
        ({"status": 403}, b"x", "HTTP status 403", "invalid_image_url"),
        ({"status": 304}, b"", "HTTP status 304", "invalid_image_url"),
        ({"content_length": "50"}, b"x", CANNOT, "invalid_image_url"),
    ],
)
def test_large_or_wrong_content_is_refused(here: ImageServer, headers: Any, body: bytes, words: str, code: str) -> None:
    here.pages["/x"] = lambda handler: answer(handler, body, **headers)
    refused(here.url("/x"), words, code, max_bytes=100)


@pytest.mark.parametrize("kind", ["image/png", "application/octet-stream", "", "IMAGE/JPEG; q=1"])
def test_possible_image_content_types_are_read(here: ImageServer, kind: str) -> None:
    here.pages["/y"] = lambda handler: answer(handler, PICTURE, content_type=kind)
    assert fetched(here.url("/y"), max_bytes=len(PICTURE)) == PICTURE


def test_endless_body_is_abandoned(here: ImageServer) -> None:
    here.pages["/drip"] = dripping(60)
    began = time.monotonic()
    refused(here.url("/drip"), CANNOT, limit_s=0.5)
    assert time.monotonic() - began < 30


def test_the_next_address_is_tried_where_one_is_not_reached(here: ImageServer) -> None:
    here.pages["/a"] = PICTURE
    assert fetched(here.url("/a"), names=FakeResolver(**{HOST.replace(".", "_"): ["127.0.0.2", "127.0.0.1"]})) == PICTURE


def test_hosts_that_are_not_there_are_named_in_the_answer(here: ImageServer) -> None:
    refused("https://nobody.example/a", f"'https://nobody.example/a' could not be downloaded: {CANNOT}")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        refused(f"http://{HOST}:{closed.getsockname()[1]}/a", CANNOT)


def test_unknown_internal_and_silent_hosts_differ_only_in_the_log(
    here: ImageServer, caplog: pytest.LogCaptureFixture, subtests: pytest.Subtests
) -> None:
    caplog.set_level(logging.INFO, "responses.images")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(0)
        names = FakeResolver(inside_example=["10.0.0.1"], nowhere_example=[])
        hosts = ("unknown.example", "inside.example", "nowhere.example", f"{HOST}:{silent.getsockname()[1]}")
        errors = set()
        for host in hosts:
            with subtests.test(host=host):
                with pytest.raises(InvalidImage) as caught:
                    fetched(f"http://{host}/a", names=names, limit_s=0.3)
                errors.add((str(caught.value).replace(host, "HOST"), caught.value.code))
    assert len(errors) == 1
    assert len({record.getMessage().rpartition(": ")[2] for record in caplog.records}) == len(hosts)


@pytest.mark.parametrize("host", ["unknown.example", "inside.example"])
def test_a_host_that_is_not_asked_is_refused_no_sooner_than_a_second(here: ImageServer, host: str) -> None:
    began = time.monotonic()
    refused(f"https://{host}/a", CANNOT, names=FakeResolver(inside_example=["10.0.0.1"]), min_refusal_s=0.4)
    assert time.monotonic() - began >= 0.4


@pytest.mark.parametrize(
    "url", ["https://exa mple/a", "https://" + "a" * 300 + ".example/", "https://..", "https://\ud800/", "https://a:99999999/"]
)
@pytest.mark.slow
def test_odd_urls_are_refused_like_any_other(url: str) -> None:
    with pytest.raises(InvalidImage):
        asyncio.run(ImageFetcher().fetch(url))
