"""Application behind other ASGI servers: the same bytes, without the extensions of our own server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from websockets.exceptions import InvalidHandshake
from websockets.sync.client import connect

from bench.client_matrix.install import NotInstalled, install_pip
from responses_app.demo.build import build
from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.cli.model_specs import HARMONY, models_setting
from tests.support import plain_http
from tests.support.clients.drive import give_up
from tests.support.engines.held_script import held_hello
from tests.support.server.serve_command import Server, free_port
from tests.support.waiting import wait_until

KEY = {"Authorization": "Bearer sk-my-own-key"}
MIB = 2**20


@pytest.fixture(scope="module")
def granian() -> str:
    """Return the folder of granian's packages, which are installed from the registry."""
    try:
        python = install_pip(Path(__file__).parent / "granian" / "requirements.txt")
    except NotInstalled as reason:
        give_up(f"no granian: {reason}", os.environ)
    return str(next(python.parents[1].glob("lib/python*/site-packages")))


@pytest.fixture(scope="module", params=["uvicorn", "granian"])
def other(request: pytest.FixtureRequest, shared: Server, tape: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start another ASGI server on the database of the shared server and yield its address. Responses of its model `held` pause."""
    port = free_port()
    models = models_setting((), tape, lambda name: build(name, shared.folder / "models"))
    script = held_hello(tmp_path_factory.mktemp("held"))
    environ = {
        **os.environ,
        "RESPONSES_DATA_DIR": str(shared.folder),
        "DATABASE_URL": default_url(shared.folder),
        "RESPONSES_MODELS": f"{models} held={script.url}&tokenizer={HARMONY}",
    }
    command = [sys.executable, "-m", request.param, "project.asgi:application", "--port", str(port)]
    if request.param == "granian":
        command += ["--interface", "asgi"]
        environ["PYTHONPATH"] = request.getfixturevalue("granian")
    log: Path = tmp_path_factory.mktemp(request.param) / "log"
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=out)
    address = f"127.0.0.1:{port}"

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        try:
            return plain_http.get(f"http://{address}/v1/models", headers=KEY, timeout=60).status_code == 200
        except httpx2.TransportError:
            return False

    try:
        wait_until(is_ready, limit_s=120, poll_s=0.1)
        yield address
    finally:
        process.terminate()
        process.wait(60)
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("stream", [False, True])
def test_response_is_created(other: str, stream: bool) -> None:
    body = {"model": "tape", "input": "Hi", "store": False, "stream": stream}
    answer = plain_http.post(f"http://{other}/v1/responses", json=body, headers=KEY, timeout=180)
    assert answer.status_code == 200
    assert "Hello there!" in answer.text
    assert answer.text.endswith("data: [DONE]\n\n") is stream


def test_streams_have_the_bytes_of_our_own_server(other: str, shared: Server) -> None:
    own_address = f"127.0.0.1:{shared.port}"
    for first, second in ((own_address, other), (other, own_address)):
        body = {"model": "tape", "input": "Hi", "stream": True}
        streamed = plain_http.post(f"http://{first}/v1/responses", json=body, headers=KEY, timeout=180).content
        uid = json.loads(streamed.split(b"\n", 2)[1].removeprefix(b"data: "))["response"]["id"]
        for address in (first, second):
            url = f"http://{address}/v1/responses/{uid}?stream=true"
            assert plain_http.get(url, headers=KEY, timeout=180).content == streamed


def test_run_of_a_client_that_disconnects_is_cancelled(other: str) -> None:
    body = {"model": "held", "input": "Hi", "stream": True}
    with plain_http.stream("POST", f"http://{other}/v1/responses", json=body, headers=KEY, timeout=180) as answer:
        events = (line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: "))
        uid = json.loads(next(events))["response"]["id"]
    url = f"http://{other}/v1/responses/{uid}"
    wait_until(lambda: plain_http.get(url, headers=KEY, timeout=180).json()["status"] == "cancelled", poll_s=0.1)


def test_body_without_a_key_is_refused_by_the_application(other: str) -> None:
    answer = plain_http.post(f"http://{other}/v1/responses", content=b"x" * MIB, timeout=180)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert answer.headers["x-request-id"].startswith("req_")


def test_websocket_creates_a_response(other: str) -> None:
    with connect(f"ws://{other}/v1/responses", additional_headers=KEY, max_size=None) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "tape", "input": "Hi", "store": False}))
        while json.loads(event := str(socket.recv(30)))["type"] != "response.completed":
            pass
        assert "Hello there!" in event
    with pytest.raises(InvalidHandshake), connect(f"ws://{other}/v1/responses"):
        pass


def test_odd_path_is_not_found(other: str) -> None:
    assert plain_http.get(f"http://{other}/static/%2e%2e/x", timeout=180).status_code == 404
