"""Fixtures: a model hub on loopback, and a separate cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants

from responses_app.demo.build import build
from responses_app.server.model_files import retries
from tests.support.hub.server import ModelHub


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("demo-chat", tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def no_cache_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the size of the KV cache that an engine of an earlier test has set. The value of a test ends with the test."""
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "")
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "PAUSES_S", (0.01,))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "hub"
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    # Set before deletion, so that the value of a test ends with the test.
    for name in ("HF_HUB_OFFLINE", "HF_TOKEN"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return folder


@pytest.fixture
def hub(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelHub]:
    del cache
    with ModelHub() as server:
        template = constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(constants.ENDPOINT)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", f"{server.url}{template}")
        monkeypatch.setattr(constants, "ENDPOINT", server.url)
        yield server
