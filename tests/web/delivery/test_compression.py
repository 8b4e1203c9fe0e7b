"""Compression: pages and static files with gzip; never the API, streams, JSON of pages or a page with a secret."""

from __future__ import annotations

import gzip

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.support import plain_http
from tests.support.server.serve_command import Server

GZIP = {"Accept-Encoding": "gzip"}


@pytest.mark.django_db
def test_pages_are_compressed_for_browsers_that_accept_it() -> None:
    client = Client()
    plain = client.get("/sign-in")
    page = client.get("/sign-in", headers=GZIP)
    assert "Content-Encoding" not in plain.headers
    assert page.headers["Content-Encoding"] == "gzip"
    assert page.headers["Vary"].count("Accept-Encoding") == 1
    assert b"<h1>Sign in</h1>" in gzip.decompress(page.content)
    assert int(page.headers["Content-Length"]) == len(page.content) < len(plain.content)


@pytest.mark.django_db
def test_two_compressed_pages_differ_in_length() -> None:
    # Random bytes, which hide what the length says about a page (BREACH).
    client = Client()
    assert len({len(client.get("/sign-in", headers=GZIP).content) for _ in range(20)}) > 1


@pytest.mark.django_db
def test_the_page_that_shows_a_new_key_is_not_compressed() -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    answer = client.post("/keys", {"name": "ci", "project": "default"}, headers=GZIP)
    assert answer.status_code == 302
    shown = client.get("/keys", headers=GZIP)
    assert b"New secret." in shown.content
    assert "Content-Encoding" not in shown.headers
    assert "no-transform" in shown.headers["Cache-Control"]
    assert client.get("/keys", headers=GZIP).headers["Content-Encoding"] == "gzip"


def test_static_files_are_compressed_and_the_api_is_not(chat_server: Server) -> None:
    key = {"Authorization": f"Bearer {chat_server.key}"}
    with plain_http.client(base_url=chat_server.url, headers=GZIP, timeout=180) as client:
        for path in ("/static/web/base.css", "/static/web/icons.svg", "/static/web/vendor/markdown-it.js"):
            file = client.get(path)
            plain = client.get(path, headers={"Accept-Encoding": "identity"})
            assert file.headers["Content-Encoding"] == "gzip"
            assert "Content-Encoding" not in plain.headers
            assert file.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
            assert file.content == plain.content
            assert int(file.headers["Content-Length"]) < int(plain.headers["Content-Length"])
            unchanged = client.get(path, headers={"If-Modified-Since": file.headers["Last-Modified"]})
            assert unchanged.status_code == 304
        assert "Content-Encoding" not in client.get("/v1/models", headers=key).headers
        for stream in (False, True):
            body = {"model": "chat", "input": "markdown", "stream": stream}
            assert "Content-Encoding" not in client.post("/v1/responses", json=body, headers=key).headers
