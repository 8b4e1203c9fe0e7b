"""Hubs, addresses, tokens and repositories that are not as expected: each is named with what to do."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from huggingface_hub import close_session, constants

from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files import opening
from responses_app.server.model_files.download import Download
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import prepare, small_snapshot
from responses_app.server.model_files.repository import list_repository
from tests.support.hub.server import ModelHub

POOLING = b'[{"idx": 0, "type": "sentence_transformers.models.Transformer"}, {"idx": 1, "type": "sentence_transformers.models.Pooling"}]'


def _problem(model: str = "demo/chat") -> str:
    with pytest.raises(CannotServe) as error:
        prepare(f"{model}=vllm:///{model}", Progress(io.StringIO()), False, lambda: False)
    return str(error.value)


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><html>Sign in to the network</html>", b'{"id": "demo', b"null", b"[1]"])
def test_a_page_in_place_of_the_hub_is_named(hub: ModelHub, page: bytes) -> None:
    hub.api_page = page
    problem = _problem()
    assert f"{hub.url} does not answer as a model hub (" in problem
    assert problem.endswith("check the connection, or set HF_ENDPOINT to the hub or a mirror.")


@pytest.mark.parametrize(
    "endpoint", ["", "127.0.0.1:8000", "localhost", "ftp://hub", "http://::1:80", "http://hub:99999", "http://"]
)
def test_an_endpoint_that_is_no_address_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str) -> None:
    del cache
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    assert _problem() == f"HF_ENDPOINT={endpoint!r} is no address such as https://huggingface.co: correct it, or unset it."


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "socks9://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_named(hub: ModelHub, monkeypatch: pytest.MonkeyPatch, proxy: str) -> None:
    del hub
    monkeypatch.setenv("ALL_PROXY", proxy)
    close_session()
    try:
        problem = _problem()
    finally:
        close_session()
    assert problem.startswith("demo/chat: the proxy cannot be used: ")
    assert problem.endswith("Set HTTPS_PROXY and ALL_PROXY to an http:// proxy, or unset them.")


def test_a_token_that_cannot_be_sent_is_named(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_ä")
    assert "the token of HF_TOKEN holds characters that no token has: copy it again from " in _problem()
    assert hub.requests == []


@pytest.mark.parametrize(
    ("after", "token", "sentence"),
    [
        ("90", "", "(429). Wait 90 s, or set HF_TOKEN, which has a higher limit."),
        ("3600", "hf_x", "(429). Wait 60 min."),
        ("", "hf_x", "(429). Wait some minutes."),
    ],
)
def test_the_wait_of_a_limit_is_named(
    hub: ModelHub, monkeypatch: pytest.MonkeyPatch, after: str, token: str, sentence: str
) -> None:
    hub.status, hub.retry_after = 429, after
    monkeypatch.setenv("HF_TOKEN", token)
    assert _problem().endswith(sentence)


@pytest.mark.parametrize("failures", [[429], [0, 503], [502, 0, 504], [-1, 0, -1]])
def test_a_hub_that_fails_for_a_moment_is_asked_again(hub: ModelHub, demo_folder: Path, failures: list[int]) -> None:
    hub.add_folder("demo/chat", demo_folder)
    hub.first_statuses, hub.retry_after, hub.page_size = list(failures), "0", 3
    out = io.StringIO()
    assert "demo/chat" in prepare("demo/chat=vllm:///demo/chat", Progress(out), False, lambda: False).downloads
    pauses = [line for line in out.getvalue().splitlines() if "; try 2 of 6 in 0.01 s" in line]
    assert len(pauses) == sum(map(bool, failures))
    host = hub.url.removeprefix("http://")
    assert [line for line in pauses if "answers" in line] == [
        f"  {host} answers {status}; try 2 of 6 in 0.01 s" for status in failures if status > 0
    ]


@pytest.mark.parametrize("content", [b"<html>Sign in to the network</html>", b"x" * 300_000])
def test_a_file_that_is_shorter_than_listed_is_named(hub: ModelHub, demo_folder: Path, content: bytes) -> None:
    hub.add_folder("demo/chat", demo_folder)
    hub.replaced["model.safetensors"] = content
    prepared = prepare("demo/chat=vllm:///demo/chat", Progress(io.StringIO()), False, lambda: False)
    with pytest.raises(CannotServe, match=r"model\.safetensors arrives with other content than the hub's hash names"):
        opening.download_all(prepared.downloads, Progress(io.StringIO()))


def test_a_cache_below_a_file_is_named(
    hub: ModelHub, demo_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add_folder("demo/chat", demo_folder)
    (tmp_path / "file").touch()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file" / "hub"))
    assert _problem().endswith("cannot be written to: set HF_HOME to a folder that you may write to.")


def test_names_of_ollama_lead_to_similar_names(hub: ModelHub, demo_folder: Path) -> None:
    hub.add_folder("Demo/Chat-0.6B", demo_folder)
    assert _problem("chat:0.6b").endswith("which is OWNER/NAME without a colon. Similar names: Demo/Chat-0.6B.")


def test_a_name_that_the_cache_writes_as_another_is_no_name(hub: ModelHub, demo_folder: Path) -> None:
    hub.add_folder("demo/chat", demo_folder)
    prepared = prepare("demo/chat=vllm:///demo/chat", Progress(io.StringIO()), False, lambda: False)
    opening.download_all(prepared.downloads, Progress(io.StringIO()))
    with pytest.raises(CannotServe, match="demo--chat: no name of a model: Cannot have --"):
        small_snapshot("demo--chat")


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"model.safetensors": None, "model-q4.gguf": b"GGUF"}, "demo/chat holds weights as GGUF, a format of llama.cpp"),
        ({"model.safetensors": None, "model-00001-of-00002.safetensors": b"x"},
         "demo/chat lacks weights by the names of the other files, model-00002-of-00002.safetensors: choose another model"),
        ({"config.json": None, "fp8/config.json": b"{}", "fp16/config.json": b"{}"},
         "no checkpoint of a model; one is in fp16, fp8: download and give that folder."),
        ({"config.json": None, "model_index.json": b"{}", "unet/config.json": b"{}"}, "is a pipeline of diffusers"),
        ({"modules.json": POOLING}, "demo/chat generates no text: the model is for embeddings (modules.json)."),
        ({"config.json": json.dumps({"architectures": ["LlamaForSequenceClassification"]}).encode()},
         "LlamaForSequenceClassification generates no text"),
    ],
)  # fmt: skip
def test_repositories_without_a_model_for_chats_are_named(
    hub: ModelHub, demo_folder: Path, files: dict[str, bytes | None], sentence: str
) -> None:
    repository = hub.add_folder("demo/chat", demo_folder)
    for name, content in files.items():
        if content is None:
            del repository.files[name]
        else:
            repository.files[name] = content
    assert sentence in _problem()


def test_errors_of_a_tokenizer_begin_with_the_name_of_the_model(hub: ModelHub, demo_folder: Path) -> None:
    repository = hub.add_folder("demo/chat", demo_folder)
    del repository.files["tokenizer.json"]
    repository.files["tokenizer.model"] = b"\n\x0bgarbage"
    problem = _problem()
    assert problem.startswith("demo/chat: ")
    assert str(constants.HF_HUB_CACHE) not in problem


def test_the_token_stays_with_the_hub(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and further pages of a list may be on other hosts."""
    monkeypatch.setenv("HF_TOKEN", "mine")
    with ModelHub() as other:
        for server in (hub, other):
            server.page_size = 1
        files = {"config.json": b"{}", "model.safetensors": b"1"}
        other.add("o/m", files)
        hub.add("o/m", files, token="mine")
        hub.redirects, hub.next_url = {"/o/m/resolve/": other.url}, other.url
        listed = list_repository("o/m", "main")
        Download(listed, listed.files).run()
        assert [file.path for file in listed.files] == sorted(files)
        assert (hub.tokens, other.tokens) == ({"mine"}, {""})
