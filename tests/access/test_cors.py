"""Browser apps of other origins: allowed origins, preflights, streams, refusals before the body, WebSockets."""

from __future__ import annotations

import json
import socket

import httpx2
import pytest
from django.core.exceptions import ImproperlyConfigured
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from project.cors import cors_policy
from responses_app.access.cors import CorsPolicy
from tests.support import plain_http
from tests.support.server.raw_answers import answer
from tests.support.server.serve_command import Server

# The origin that the fixture `shared` allows.
APP = "https://app.example"
STRANGER = "https://stranger.example"


@pytest.mark.parametrize(
    "origin",
    ["https://app.example", "http://localhost:5173", "http://[::1]:3000", "tauri://localhost", "chrome-extension://abcdef"],
)
def test_exact_origins_are_accepted(origin: str) -> None:
    assert cors_policy([origin]).origins == {origin}


@pytest.mark.parametrize(
    ("origin", "problem"),
    [
        ("*", "list each origin"),
        ("null", "list each origin"),
        ("app.example", "scheme://host"),
        ("https://app.example/", "without a path"),
        ("https://App.example", "small letters"),
        ("https://*.example", "scheme://host"),
        ("https://user@app.example", "scheme://host"),
        ("https://app.example:443", "default port"),
        ("http://app.example:80", "default port"),
    ],
)
def test_other_values_are_refused_at_the_start(origin: str, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"RESPONSES_CORS_ORIGINS: .*{problem}"):
        cors_policy([origin])


def test_without_origins_nothing_is_allowed_and_nothing_is_said() -> None:
    policy = CorsPolicy()
    assert not policy.covers("/v1/models")
    assert policy.headers("/v1/models", APP) == []
    assert policy.socket_problem(STRANGER, "server.example") is None, "the key alone decides, as before"


def preflight(server: Server, path: str, origin: str = APP, names: str = "authorization, content-type") -> httpx2.Response:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
    return httpx2.options(f"{server.url}{path}", headers=asked, timeout=30)


@pytest.mark.parametrize("path", ["/v1/responses", "/openresponses/v1/responses", "/v1/files", "/v1/models"])
def test_preflight_needs_no_key(shared: Server, path: str) -> None:
    names = "authorization, content-type, x-stainless-os"
    answered = preflight(shared, path, names=names)
    assert (answered.status_code, answered.content) == (204, b"")
    assert answered.headers["access-control-allow-origin"] == APP
    assert answered.headers["access-control-allow-methods"] == "GET, POST, DELETE"
    assert answered.headers["access-control-allow-headers"] == names
    assert answered.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answered.headers


def test_preflight_of_another_origin_is_refused(shared: Server) -> None:
    answered = preflight(shared, "/v1/responses", STRANGER)
    assert answered.status_code == 403
    assert "RESPONSES_CORS_ORIGINS" in answered.json()["error"]["message"]
    assert "access-control-allow-origin" not in answered.headers


@pytest.mark.parametrize("path", ["/", "/health", "/admin/login/", "/chat", "/static/web/base.css"])
def test_pages_allow_no_other_origin(shared: Server, path: str) -> None:
    for answered in (preflight(shared, path), plain_http.get(f"{shared.url}{path}", headers={"Origin": APP}, timeout=30)):
        assert not [name for name in answered.headers if name.startswith("access-control")]


@pytest.mark.parametrize("origin", [APP, STRANGER, None])
@pytest.mark.parametrize("case", ["stream", "unknown path", "no key"])
def test_scripts_of_an_allowed_origin_read_answers(shared: Server, case: str, origin: str | None) -> None:
    headers = {"Origin": origin} if origin else {}
    if case != "no key":
        headers["Authorization"] = f"Bearer {shared.key}"
    if case == "stream":
        body = {"model": "tape", "input": "Hi", "stream": True}
        answered = plain_http.post(f"{shared.url}/v1/responses", json=body, headers=headers, timeout=30)
    else:
        answered = plain_http.get(
            f"{shared.url}/v1/{'nowhere' if case == 'unknown path' else 'models'}", headers=headers, timeout=30
        )
    assert answered.status_code == {"stream": 200, "unknown path": 404, "no key": 401}[case]
    assert answered.headers["vary"] == "Origin"
    assert answered.headers.get("access-control-allow-origin") == (APP if origin == APP else None)
    exposed = answered.headers.get("access-control-expose-headers", "").split(", ")
    for name in ("x-request-id", "request-id", "retry-after", "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"):
        assert (name in exposed) == (origin == APP)


@pytest.mark.parametrize("origin", [APP, STRANGER])
def test_refusal_before_the_body_is_readable(shared: Server, origin: str) -> None:
    head = f"POST /v1/responses HTTP/1.1\r\nHost: x\r\nOrigin: {origin}\r\nAuthorization: Bearer sk-wrong\r\nContent-Length: 9\r\n\r\n"
    with socket.create_connection(("127.0.0.1", shared.port), timeout=30) as client:
        client.sendall(head.encode())
        status, headers, _ = answer(client)
    assert status == 401
    assert headers.get("access-control-allow-origin") == (APP if origin == APP else None)
    assert headers["vary"] == "Origin"


@pytest.mark.parametrize("origin", [APP, STRANGER, None, "own"])
def test_websocket_checks_the_origin(shared: Server, origin: str | None) -> None:
    sent = {"Authorization": f"Bearer {shared.key}"}
    if origin:
        sent["Origin"] = shared.url if origin == "own" else origin
    address = f"ws://127.0.0.1:{shared.port}/v1/responses"
    if origin != STRANGER:
        with connect(address, additional_headers=sent, max_size=None) as connection:
            assert connection.response
        return
    with pytest.raises(InvalidStatus) as refused, connect(address, additional_headers=sent, max_size=None):
        pass
    assert refused.value.response.status_code == 403
    assert STRANGER in json.loads(refused.value.response.body)["error"]["message"]
