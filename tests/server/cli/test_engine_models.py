"""Models that several engine URLs list: the same at all URLs, or a clear error before anything runs."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler
from typing import Any, TypeAlias

import pytest

from responses_app.engine_interface import EngineUnreachable
from responses_app.engines.http.client import HttpVllm
from responses_app.engines.pool.engine import EnginePool
from responses_app.runs.models import parse_models
from responses_app.server.cli.model_specs import InvalidModelSpec, models_setting, one_engine
from tests.support.deploy.proxies import write_certificate
from tests.support.http_server import SilentHandler, http_server, serving

Card: TypeAlias = dict[str, Any]
Start: TypeAlias = Callable[..., str]


class ListServer(ThreadingHTTPServer):
    """Server that lists `cards` as its models."""

    cards: tuple[Card, ...] = ()


class Handler(SilentHandler):
    """Handler of `GET /v1/models`."""

    def do_GET(self) -> None:
        assert isinstance(self.server, ListServer)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": self.server.cards}).encode())


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a server that lists the given models, and return the URL."""
    with ExitStack() as servers:

        def start(*cards: Card) -> str:
            server = servers.enter_context(serving(ListServer(("127.0.0.1", 0), Handler)))
            server.cards = cards
            return f"http://127.0.0.1:{server.server_port}"

        yield start


def card(name: str = "big", root: str = "/srv/big", max_model_len: int = 4096) -> Card:
    return {"id": name, "root": root, "max_model_len": max_model_len}


def build(name: str) -> Path:
    return Path("/built") / name


def setting(*engines: str, models: tuple[str, ...] = ()) -> str:
    """Return RESPONSES_MODELS for several values of `--engine`."""
    return models_setting(models, one_engine(engines), build)


def checkpoint(folder: Path, content: str) -> str:
    folder.mkdir()
    (folder / "tokenizer.json").write_text(content)
    return str(folder)


def test_engines_with_the_same_model_are_a_pool(start: Start) -> None:
    one, other = start(card()), start(card())
    entry = setting(one, other)
    assert entry == f"big={one},{other}?model=big&tokenizer=%2Fsrv%2Fbig"
    engine = parse_models(entry)["big"].engine
    assert isinstance(engine, EnginePool)
    assert [status.name for status in engine.statuses] == [one, other]


def test_model_beside_several_engines_names_the_tokenizer() -> None:
    assert setting("http://a:1", "http://b:1", models=("x=org/x",)) == "x=http://a:1,http://b:1?tokenizer=org%2Fx&model=x"
    source = "x=http://a:1,http://b:1?tokenizer=org/x"
    assert models_setting((source,), None, build) == source


def test_engine_that_is_away_is_left_out_while_another_lists_its_models(start: Start) -> None:
    one, away = start(card()), "http://127.0.0.1:9"
    assert setting(one, f"{away}?start_wait=0").startswith(f"big={one},{away}?start_wait=0&model=big")


def test_same_tokenizer_may_be_in_different_folders(start: Start, tmp_path: Path) -> None:
    first = checkpoint(tmp_path / "a", "{}")
    assert setting(start(card(root=first)), start(card(root=checkpoint(tmp_path / "b", "{}")))).startswith("big=")
    with pytest.raises(InvalidModelSpec, match="the tokenizer of big differs"):
        setting(start(card(root=first)), start(card(root=checkpoint(tmp_path / "c", "{ }"))))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (card("small"), "serves big, and .* serves small: several URLs are for one model"),
        (card(max_model_len=1024), "the max_model_len of big differs: .*4096 at .*1024 at .*add max_model_len= to the URL"),
        (card(root="/srv/other"), "the tokenizer of big differs: /srv/big .* /srv/other .*add tokenizer= to the URL"),
    ],
)
def test_different_models_are_refused(start: Start, other: Card, words: str) -> None:
    with pytest.raises(InvalidModelSpec, match=words):
        setting(start(card()), start(other))


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "socks5://127.0.0.1:9", "http://[::1"])
def test_models_are_listed_without_a_proxy_of_the_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    engine = start(card())
    assert setting(f"{engine}?start_wait=0").startswith(f"big={engine}?")


def test_named_parameters_are_not_compared(start: Start) -> None:
    one, other = start(card()), start(card(root="/srv/other", max_model_len=1024))
    assert setting(f"{one}?tokenizer=org/big&max_model_len=1024", other).startswith(f"big={one},{other}?")


@pytest.mark.parametrize(
    ("engines", "words"),
    [
        (("http://a:1", "http://a:1/"), "http://a:1 is listed twice"),
        (("http://a:1", "script:///t.jsonl"), "must be http or https URLs"),
        (("vllm:///a", "vllm:///b"), "must be http or https URLs"),
        (("http://a:1?model=x", "http://b:1?model=y"), "model is x and y"),
    ],
)
def test_engines_that_cannot_be_a_pool_are_refused(engines: tuple[str, ...], words: str) -> None:
    with pytest.raises(InvalidModelSpec, match=words):
        setting(*engines)


def test_several_urls_in_a_model_are_checked() -> None:
    with pytest.raises(InvalidModelSpec, match="the parameters of http://a:1 stand behind the last URL"):
        models_setting(("x=http://a:1?tokenizer=t,http://b:1",), None, build)


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/path", "name them with --model"),
        ("/path/v1", "give its URL without /v1, as in --engine http://127.0.0.1:{}/path"),
        ("/v1/chat/completions", "give its URL without /v1, as in --engine http://127.0.0.1:{}"),
    ],
)
def test_a_server_without_models_is_named_in_a_line(path: str, remedy: str) -> None:
    class WithoutModels(SilentHandler):
        def do_GET(self) -> None:
            self.send_error(404)

    with serving(http_server(WithoutModels)) as other, pytest.raises(InvalidModelSpec) as refused:
        setting(f"http://127.0.0.1:{other.server_port}{path}")
    assert str(refused.value) == (
        f"the engine at 127.0.0.1:{other.server_port} does not list its models "
        f"(GET {path}/v1/models is answered 404); {remedy.format(other.server_port)}"
    )


@pytest.mark.parametrize(("userinfo", "problem"), [("", "wants a key"), (":wrong@", "refuses the key of its URL")])
def test_an_engine_that_refuses_the_key_names_the_key(userinfo: str, problem: str) -> None:
    class Locked(SilentHandler):
        def do_GET(self) -> None:
            self.send_error(401)

    with serving(http_server(Locked)) as engine, pytest.raises(InvalidModelSpec) as refused:
        setting(f"http://{userinfo}127.0.0.1:{engine.server_port}")
    host = f"127.0.0.1:{engine.server_port}"
    assert str(refused.value) == (
        f"the engine at {host} {problem} (HTTP 401): give its key in the URL, as in http://:KEY@{host}"
    )


def test_none_of_the_engines_lists_its_models() -> None:
    with pytest.raises(InvalidModelSpec, match="is away"):
        setting("http://127.0.0.1:9?start_wait=0", "http://127.0.0.1:11?start_wait=0")


class PlainAnswer(BaseRequestHandler):
    """Handler that answers the first bytes of a TLS handshake as an HTTP server without TLS does."""

    def handle(self) -> None:
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_https_url_of_a_plain_http_server_names_the_scheme() -> None:
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), PlainAnswer)) as other:
        place = f"127.0.0.1:{other.server_port}"
        with pytest.raises(InvalidModelSpec, match=f"its URL begins with http://{place}$"):
            setting(f"https://{place}/path?start_wait=0")
        with pytest.raises(EngineUnreachable, match=f"its URL begins with http://{place}$"):
            asyncio.run(HttpVllm(f"https://{place}").start())


def test_engine_with_an_unknown_certificate_is_not_called_away(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "cert.pem")
    other = ListServer(("127.0.0.1", 0), Handler)
    other.socket = context.wrap_socket(other.socket, server_side=True)
    refused = r"certificate of the engine at .* is not accepted .* SSL_CERT_FILE"
    with serving(other):
        place = f"https://127.0.0.1:{other.server_port}"
        with pytest.raises(InvalidModelSpec, match=refused):
            setting(f"{place}?start_wait=0")
        with pytest.raises(
            EngineUnreachable, match=r"certificate is not accepted \(self-signed certificate\): SSL_CERT_FILE names"
        ):
            asyncio.run(HttpVllm(place).start())
