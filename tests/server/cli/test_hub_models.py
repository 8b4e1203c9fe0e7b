"""bin/serve with a model of the hub: refusals before the engine starts, the server during a download, and a whole start."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from responses_app.demo.build import build
from tests.support import plain_http
from tests.support.hub.server import ModelHub
from tests.support.server.processes import family, left
from tests.support.server.serve_command import START_LIMIT, Server
from tests.support.waiting import wait_until

MODEL = "demo/chat"


@pytest.fixture(scope="module")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("demo-chat", tmp_path_factory.mktemp("models"))


@pytest.fixture
def hub(demo_folder: Path) -> Iterator[ModelHub]:
    with ModelHub() as server:
        server.add_folder(MODEL, demo_folder)
        yield server


def _serve(tmp_path: Path, endpoint: str, *arguments: str) -> Server:
    home = str(tmp_path / "hf")
    return Server(tmp_path / "data", *arguments, HF_ENDPOINT=endpoint, HF_HOME=home, HF_TOKEN="", HF_HUB_OFFLINE="0")


def test_model_that_the_hub_does_not_have_is_refused_before_the_start(tmp_path: Path, hub: ModelHub) -> None:
    """The sentences are tested without a server: tests/server/model_files/test_prepare.py."""
    server = _serve(tmp_path, hub.url, "--model", "demo/chatt", "--worker")
    assert server.process.wait(START_LIMIT) == 1
    assert "serve: demo/chatt: http://127.0.0.1:" in server.output
    assert "has no model of this name, or the model is private. Similar names: demo/chat." in server.output
    assert "Traceback" not in server.output
    assert "Starting" not in server.output


def test_values_that_vllm_refuses_are_named_before_the_download(tmp_path: Path, hub: ModelHub) -> None:
    server = _serve(tmp_path, hub.url, "--model", MODEL, "--", "--max-model-len", "99999999")
    assert server.process.wait(START_LIMIT) == 1
    assert f"serve: {MODEL}: User-specified max_model_len (99999999) is greater than the derived max_model_len" in server.output
    assert "Starting" not in server.output
    assert hub.ranges("model.safetensors") == []


def test_server_answers_during_a_download_and_ctrl_c_keeps_what_is_there(tmp_path: Path, hub: ModelHub) -> None:
    gate, blocks = threading.Event(), iter(range(10**6))
    # About half of the file arrives, then the hub waits.
    hub.before_block = lambda: gate.wait() if next(blocks) > 80 else None
    server = _serve(tmp_path, hub.url, "--model", MODEL)
    try:
        wait_until(
            lambda: "The models are downloaded while" in server.output, limit_s=START_LIMIT, explain=lambda: server.output
        )

        def page() -> str:
            try:
                return plain_http.get(f"{server.url}/models").text
            except httpx2.TransportError:
                return ""

        wait_until(lambda: "Downloading 4" in page(), limit_s=START_LIMIT, explain=page)
        response = server.ask(model=MODEL)
        assert (response.status_code, response.headers["Retry-After"]) == (503, "2")
        processes = family(server.process.pid)
        server.stop()
        assert left(processes) == []
    finally:
        gate.set()
        server.end()
    assert "Traceback" not in server.output
    assert "leaked" not in server.output
    assert "What is downloaded is kept" in server.output
    assert server.output.rstrip().endswith("Stopped.")
    (partial,) = (tmp_path / "hf" / "hub" / "models--demo--chat" / "blobs").glob("*.incomplete")
    assert partial.stat().st_size > 4_000_000


@pytest.mark.engine
def test_model_of_the_hub_is_downloaded_and_answers(tmp_path: Path, hub: ModelHub) -> None:
    hub.cuts = [10**9, 3_000_000]
    server = _serve(tmp_path, hub.url, "--model", MODEL)
    try:
        server.ready(limit_s=4 * START_LIMIT)
        assert hub.ranges("model.safetensors") == ["", "bytes=3000000-"]
        response = server.ask(model=MODEL, max_output_tokens=16)
        assert response.status_code == 200, response.text
        assert '<span class="status">Ready</span>' in plain_http.get(f"{server.url}/models").text
        assert "context   32,768 tokens" in server.output
    finally:
        server.end()
    assert "leaked" not in server.output
