"""Engine URLs: the chosen engine, and the errors for invalid URLs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from responses_app.engines import open_engine
from responses_app.engines.http.client import HttpVllm
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.engines.vllm.inprocess import InProcessVllm
from tests.support.engines.generate import collect, make_request, tokens


def test_script_url_opens_a_tape(tmp_path: Path) -> None:
    file = tmp_path / "a tape.jsonl"
    file.write_text('{"chunks": [{"tokens": [5]}]}')
    engine = open_engine(f"script://{str(file).replace(' ', '%20')}?loop=1&max_model_len=77")
    assert isinstance(engine, ReplayEngine)
    assert engine.max_model_len == 77

    async def main() -> list[int]:
        await engine.start()
        return tokens(await collect(engine, make_request())) + tokens(await collect(engine, make_request()))

    assert asyncio.run(main()) == [5, 5]


def test_http_url_opens_a_remote_server() -> None:
    engine = open_engine("https://:se%2Fcret@gpu.example:8000/east/?model=m&max_model_len=99&priority=1")
    assert isinstance(engine, HttpVllm)
    assert engine.base == "https://gpu.example:8000/east"
    assert engine.model == "m"
    assert engine.max_model_len == 99


def test_vllm_url_opens_a_directory_or_a_name_on_the_hub(tmp_path: Path) -> None:
    local, named = open_engine(f"vllm://{tmp_path}?max_model_len=5"), open_engine("vllm:///Qwen/Qwen3-0.6B")
    assert isinstance(local, InProcessVllm)
    assert isinstance(named, InProcessVllm)
    assert (local.model, named.model) == (str(tmp_path), "Qwen/Qwen3-0.6B")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("llama://x", "vllm, http, https, unix, script"),
        ("model.gguf", "an engine URL begins with"),
        ("http://host?mode=x", "unknown parameter mode .* allowed: max_model_len, model, priority"),
        ("script:///x?lop=1", "unknown parameter lop .* allowed: loop, max_model_len"),
        ("vllm://", "without a path"),
        ("vllm:///no/such/directory/here", "no such model directory"),
    ],
)
def test_invalid_url_raises_with_reason(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        open_engine(url)


def test_opening_an_engine_does_not_import_vllm() -> None:
    # In a new interpreter: another test may have imported vLLM.
    import subprocess
    import sys

    code = "import sys; from responses_app.engines import open_engine; open_engine('vllm:///a/b'); print('vllm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
