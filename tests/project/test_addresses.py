"""Wrong addresses in settings: each is refused with a sentence that names the setting and what is allowed."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.addresses import (
    check_allowed_hosts,
    check_embeddings,
    check_http_url,
    check_sandbox_url,
    check_trusted_origins,
)

SANDBOX = "RESPONSES_SANDBOX_URL"


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("foo", "unix:/path/of/socket or http://host:port, not 'foo'"),
        ("localhost:9000", "not 'localhost:9000'"),
        ("https://host:9000", "not 'https://host:9000'"),
        ("http://host", "a port and no path"),
        ("http://host:9000/run", "a port and no path"),
        ("http://host:90000", "not 'http://host:90000'"),
        ("http://user:hidden@host:9000", "without a user name"),
        ("unix:sandbox.sock", "must begin with /"),
    ],
)
def test_a_wrong_address_of_the_sandbox_is_named(url: str, sentence: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"^{SANDBOX} must be .*{sentence}") as refused:
        check_sandbox_url(SANDBOX, url, "token")
    assert "hidden" not in str(refused.value)


def test_a_runner_on_the_network_needs_a_token() -> None:
    with pytest.raises(ImproperlyConfigured, match="needs RESPONSES_SANDBOX_TOKEN"):
        check_sandbox_url(SANDBOX, "http://host:9000", "")
    for url, token in (
        ("http://host:9000", "token"),
        ("http://[::1]:9000/", "token"),
        ("unix:/run/sandbox.sock", ""),
        ("", ""),
    ):
        assert check_sandbox_url(SANDBOX, url, token) == url


@pytest.mark.parametrize(
    "url", ["collector:4318", "ftp://host", "http://", "http:/host", "http://a b", "http://a/\x07", "http://[host", "//host"]
)
def test_a_wrong_http_address_is_named(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^NAME must be an http or https URL such as http://example"):
        check_http_url("NAME", url, "http://example")


def test_embeddings_need_an_address_and_a_model() -> None:
    url = "http://localhost:8001/v1"
    for values, missing in (
        ((url, "", ""), "RESPONSES_EMBEDDINGS_MODEL"),
        (("", "m", ""), "RESPONSES_EMBEDDINGS_URL"),
        (("", "", "k"), "RESPONSES_EMBEDDINGS_URL"),
    ):
        with pytest.raises(ImproperlyConfigured, match=f"needs {missing}"):
            check_embeddings(*values)
    assert (check_embeddings(url, "m", ""), check_embeddings("", "", "")) == (url, "")


@pytest.mark.parametrize(
    "host",
    ["https://a.example", "a.example:8000", "a.example/", "*.a.example", "user@a.example", "[::1", "{}", "[a.example]", "a=b"],
)
def test_a_wrong_allowed_host_is_named(host: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^ALLOWED_HOSTS must be host names"):
        check_allowed_hosts(["a.example", host])


def test_an_empty_list_of_allowed_hosts_is_refused() -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^ALLOWED_HOSTS is empty, so that no page would be answered"):
        check_allowed_hosts([])


@pytest.mark.parametrize("origin", ["a.example", "//a.example", "https://a.example/", "https://", "ftp://a.example", "https:a"])
def test_a_wrong_trusted_origin_is_named(origin: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=r"^CSRF_TRUSTED_ORIGINS must be origins"):
        check_trusted_origins(["https://a.example", origin])


def test_names_that_django_accepts_are_accepted() -> None:
    hosts = ["*", "a.example", ".a.example", "10.0.0.1", "[::1]", "localhost"]
    assert check_allowed_hosts(hosts) == hosts
    origins = ["https://a.example", "http://a.example:8000", "https://*.a.example", "http://[::1]:8000"]
    assert check_trusted_origins(origins) == origins
