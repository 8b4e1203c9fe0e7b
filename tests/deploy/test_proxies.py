"""A server behind nginx, Caddy and HAProxy with the files below deploy/: streams, uploads, WebSockets, errors, and pages over TLS."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect

from tests.support import plain_http
from tests.support.deploy import proxies
from tests.support.deploy.proxies import DEPLOY, Proxy
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

# Larger than the limit of JSON bodies, which is 64 MiB.
FILE_MIB = 72
MIB = 2**20
# Seconds without a byte that each proxy must allow: heartbeats are off for a client that does not stream.
QUIET_S = 75
SECONDS = {"s": 1, "m": 60, "h": 3600}


class EmptyAnswers(BaseHTTPRequestHandler):
    """Answers every GET with 200 and no body."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that says a word and then nothing for the input `slow`, or all words at once for the input `quick`."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    start, end = (
        encoding.encode(text, allowed_special="all") for text in ("<|channel|>final<|message|>Hello", " there!<|return|>")
    )
    quick, slow = (encoding.encode(f"{word}<|end|><|start|>assistant", allowed_special="all") for word in ("quick", "slow"))
    lines = [
        {"match": quick, "chunks": [{"tokens": start}, {"tokens": end}]},
        {"match": slow, "chunks": [{"tokens": start}, {"delay": 600}, {"tokens": end}]},
    ]
    folder = tmp_path_factory.mktemp("proxied")
    (folder / "tape.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    server = Server(
        folder / "data",
        *("--engine", f"script://{folder / 'tape.jsonl'}?loop=1"),
        RESPONSES_TLS="True",
        RESPONSES_TRUSTED_PROXIES="127.0.0.1",
        RESPONSES_FILE_MIB=str(FILE_MIB),
        RESPONSES_HEARTBEAT="3600",
    )
    yield server.ready()
    server.end()


@pytest.fixture(scope="module", params=sorted(proxies.COMMANDS))
def proxy(request: pytest.FixtureRequest, served: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    if reason := proxies.missing(request.param):
        pytest.skip(reason)
    with proxies.proxy(request.param, served.port, tmp_path_factory.mktemp(request.param) / "proxy") as running:
        yield running


@pytest.fixture
def client(proxy: Proxy, served: Server) -> Iterator[httpx2.Client]:
    with proxy.client(headers={"Authorization": f"Bearer {served.key}"}) as client:
        yield client


def test_each_event_of_a_stream_passes_at_once(client: httpx2.Client) -> None:
    """The first word arrives while the model is silent, and the end comes when the response is cancelled."""
    body = {"model": "tape", "input": "slow", "stream": True, "background": True}
    with client.stream("POST", "/v1/responses", json=body) as answer:
        events = (json.loads(line.removeprefix("data: ")) for line in answer.iter_lines() if line.startswith("data: {"))
        created = next(events)["response"]["id"]
        assert next(event for event in events if event["type"] == "response.output_text.delta")["delta"] == "Hello"
        assert client.get(f"/v1/responses/{created}").json()["status"] == "in_progress"
        assert client.post(f"/v1/responses/{created}/cancel").json()["status"] == "cancelled"
        assert list(events)[-1]["response"]["status"] == "cancelled"


def test_documented_curl_streams_an_answer(proxy: Proxy, served: Server) -> None:
    (command,) = re.findall(
        r"^    (curl -N (?:.*\\\n)*.*)$", (DEPLOY.parent / "docs/operations/proxy.md").read_text(), re.MULTILINE
    )
    for old, new in {"-N https://verbatim.example.com": f"-ksSN {proxy.url}", "demo-chat": "tape", "Hello": "quick"}.items():
        assert old in command
        command = command.replace(old, new)
    run = subprocess.run(
        ["sh", "-c", command], env={**os.environ, "KEY": served.key}, capture_output=True, text=True, check=True
    )
    assert "event: response.completed" in run.stdout
    assert run.stdout.endswith("data: [DONE]\n\n"), run.stderr


def test_an_upload_above_the_limit_of_json_passes(client: httpx2.Client) -> None:
    content = bytes(range(256)) * (4096 * (FILE_MIB - 1))
    assert len(content) == (FILE_MIB - 1) * MIB > 64 * MIB
    made = client.post("/v1/files", files={"file": ("data.bin", content)}, data={"purpose": "user_data"}).json()
    assert made["bytes"] == len(content)
    digest = hashlib.sha256()
    with client.stream("GET", f"/v1/files/{made['id']}/content") as answer:
        for part in answer.iter_bytes():
            digest.update(part)
    assert digest.digest() == hashlib.sha256(content).digest()
    client.delete(f"/v1/files/{made['id']}")


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/v1/responses", {"content": b" " * (65 * MIB), "headers": {"Content-Type": "application/json"}}, 413),
        ("/v1/files", {"files": {"file": ("large", bytes((FILE_MIB + 1) * MIB))}, "data": {"purpose": "user_data"}}, 413),
        ("/v1/responses", {"json": {"model": "none", "input": "Hi"}}, 400),
        ("/v1/nothing", {"json": {}}, 404),
        ("/v1/responses", {"json": {"model": "tape"}, "headers": {"Authorization": "Bearer wrong"}}, 401),
    ],
    ids=["long body", "large file", "unknown model", "unknown path", "wrong key"],
)
def test_an_error_stays_the_json_of_the_server(
    client: httpx2.Client, path: str, options: dict[str, object], status: int
) -> None:
    answer = client.post(path, **options)  # type: ignore[arg-type]
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json")
    assert answer.json()["error"]["message"]


def test_the_log_of_the_proxy_has_the_request_id_and_no_key(proxy: Proxy, client: httpx2.Client, served: Server) -> None:
    answer = client.get("/v1/models", headers={"x-api-key": served.key})
    wait_until(lambda: answer.headers["x-request-id"] in proxy.log.read_text(), explain=proxy.log.read_text)
    assert served.key not in proxy.log.read_text()


@pytest.mark.parametrize("name", sorted(proxies.COMMANDS))
def test_a_server_that_is_away_is_named_in_json(name: str, tmp_path: Path) -> None:
    if reason := proxies.missing(name):
        pytest.skip(reason)
    upstream = ThreadingHTTPServer(("127.0.0.1", 0), EmptyAnswers)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with proxies.proxy(name, upstream.server_port, tmp_path / "proxy") as proxy, proxy.client() as client:
        upstream.shutdown()
        upstream.server_close()
        answer = client.post("/v1/responses", json={})
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/json")
    assert answer.json()["error"] == {
        "message": "The server is away, or restarts. Try again in a moment.",
        "type": "server_error",
        "param": None,
        "code": "server_error",
    }
    assert int(answer.headers["Retry-After"]) > 0


def test_a_websocket_passes(proxy: Proxy, served: Server) -> None:
    """A response arrives over TLS. One thread reads and writes: OpenSSL allows no second one for a connection."""
    address = f"wss://localhost:{proxy.port}/v1/responses"

    async def answer() -> list[dict[str, Any]]:
        key = {"Authorization": f"Bearer {served.key}"}
        async with connect(address, additional_headers=key, ssl=proxy.context, proxy=None) as socket:
            await socket.send(json.dumps({"type": "response.create", "model": "tape", "input": "quick"}))
            events = [json.loads(await socket.recv())]
            while events[-1]["type"] != "response.completed":
                events.append(json.loads(await socket.recv()))
        return events

    events = asyncio.run(asyncio.wait_for(answer(), 60))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "Hello there!"


def test_pages_are_those_of_https(proxy: Proxy, served: Server) -> None:
    """Cookies are secure, a form passes the check of its origin, and the other port leads to TLS."""
    link = served.manage("signin", "--url", proxy.url, RESPONSES_TLS="True")
    with proxy.client(follow_redirects=True) as browser:
        assert browser.get(link).status_code == 200
        assert all(cookie.secure for cookie in browser.cookies.jar)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', browser.get("/").text)
        assert token is not None
        form = {"csrfmiddlewaretoken": token[1]}
        assert (
            browser.post("/sign-out", data=form, headers={"Origin": proxy.url, "Referer": f"{proxy.url}/"}).status_code == 200
        )
    redirect = plain_http.get(f"http://localhost:{proxy.plain_port}/chat?a=b", follow_redirects=False)
    assert redirect.status_code == 308
    assert redirect.headers["Location"].endswith("/chat?a=b")
    assert redirect.headers["Location"].startswith("https://localhost")


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("nginx/verbatim.conf", ("proxy_read_timeout", "proxy_send_timeout")),
        ("caddy/Caddyfile", ("response_header_timeout", "read_timeout", "write_timeout", "read_body", "idle")),
        ("haproxy/haproxy.cfg", ("timeout client", "timeout server", "timeout tunnel")),
    ],
)
def test_quiet_connections_stay_open(file: str, names: tuple[str, ...]) -> None:
    text = (DEPLOY / file).read_text()
    for name in names:
        match = re.search(rf"^\s*{name}\s+(\d+)([smh]);?", text, re.MULTILINE)
        assert match, name
        assert int(match[1]) * SECONDS[match[2]] > QUIET_S
