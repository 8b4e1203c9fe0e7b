"""Cookies behind TLS, and of two servers on one host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from http.cookies import Morsel, SimpleCookie
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured

from project.tls import cookie_name, proxy_header
from tests.support.server.serve_command import Server


@pytest.fixture
def behind_tls(tmp_path: Path, tape: str) -> Iterator[Server]:
    server = Server(
        tmp_path / "data",
        "--engine",
        tape,
        RESPONSES_TLS="True",
        RESPONSES_HSTS_SECONDS="600",
        RESPONSES_TRUSTED_PROXIES="127.0.0.1",
    )
    yield server.ready()
    server.end()


def cookies(answer: httpx2.Response) -> dict[str, Morsel[str]]:
    """The cookies that an answer sets."""
    jar: SimpleCookie = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        jar.load(line)
    return dict(jar)


def signed_in(server: Server) -> dict[str, Morsel[str]]:
    """The cookies of the operator."""
    link = server.manage("signin", "--url", server.url)
    return cookies(httpx2.get(link, follow_redirects=False, timeout=180))


def page(server: Server, header: str, path: str = "/responses") -> httpx2.Response:
    return httpx2.get(f"{server.url}{path}", headers={"Cookie": header}, follow_redirects=False, timeout=180)


def test_two_servers_on_a_host_do_not_sign_each_other_out(shared: Server, behind_tls: Server) -> None:
    # A browser sends the cookies of both to each of them, as it does not look at ports.
    both = {**signed_in(shared), **signed_in(behind_tls)}
    assert {f"sessionid-{shared.port}", f"sessionid-{behind_tls.port}"} <= set(both)
    header = "; ".join(f"{name}={morsel.value}" for name, morsel in both.items())
    assert [page(server, header).status_code for server in (shared, behind_tls)] == [200, 200]
    assert not any(morsel["secure"] for name, morsel in both.items() if name.endswith(str(shared.port)))

    secure = {name: morsel for name, morsel in both.items() if name.endswith(str(behind_tls.port))}
    assert all(morsel["secure"] and (morsel["httponly"] or "csrf" in name) for name, morsel in secure.items())
    shown = page(behind_tls, header)
    assert shown.headers["strict-transport-security"] == "max-age=600"
    assert "strict-transport-security" not in page(shared, header).headers
    _sign_out(behind_tls, header, shown)
    assert page(shared, header).status_code == 200


def _sign_out(server: Server, header: str, shown: httpx2.Response) -> None:
    """Check that a form of a page fetched by TLS is accepted, and a form of another site is not."""
    set_now = cookies(shown)[f"csrftoken-{server.port}"]
    assert set_now["secure"]
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', shown.text)
    assert token
    where = urlsplit(server.url).netloc
    sent: dict[str, Any] = {"Cookie": f"{header}; {set_now.key}={set_now.value}"}
    form = {"csrfmiddlewaretoken": token[1]}
    statuses = [
        httpx2.post(f"{server.url}/sign-out", data=form, headers={**sent, "Origin": origin}, timeout=180).status_code
        for origin in ("https://evil.example", f"http://{where}", f"https://{where}")
    ]
    assert statuses == [403, 403, 302]
    assert page(server, header).status_code == 302


def test_wrong_passwords_behind_a_trusted_proxy_block_an_account_for_one_address_alone(behind_tls: Server) -> None:
    token = "a" * 32
    sent = {"Cookie": f"csrftoken-{behind_tls.port}={token}", "Origin": f"https://{urlsplit(behind_tls.url).netloc}"}

    def attempt(forwarded_for: str) -> int:
        return httpx2.post(
            f"{behind_tls.url}/sign-in",
            data={"username": "ada", "password": "wrong", "csrfmiddlewaretoken": token},
            headers={**sent, "X-Forwarded-For": forwarded_for},
            timeout=180,
        ).status_code

    # The client writes the left address itself.
    assert [attempt(f"198.51.100.{number}, 203.0.113.9") for number in range(6)] == [200] * 5 + [429]
    assert attempt("203.0.113.10") == 200


def test_a_header_of_a_proxy_is_believed_only_if_the_operator_says_so() -> None:
    assert proxy_header("", tls=True) is None
    assert proxy_header("X-Forwarded-Proto", tls=True) == ("HTTP_X_FORWARDED_PROTO", "https")
    for name, tls in (("X-Forwarded-Proto", False), ("x y", True)):
        with pytest.raises(ImproperlyConfigured, match="RESPONSES_TLS_HEADER"):
            proxy_header(name, tls)


def test_a_suffix_is_part_of_a_name() -> None:
    assert cookie_name("sessionid", "") == "sessionid"
    assert cookie_name("sessionid", "8000") == "sessionid-8000"
    with pytest.raises(ImproperlyConfigured, match="RESPONSES_COOKIE_SUFFIX"):
        cookie_name("sessionid", "a;b")
