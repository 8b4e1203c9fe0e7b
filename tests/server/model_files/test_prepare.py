"""Checks of models before a start: what is shown, and a sentence for each fault."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from django.core.management import CommandError, call_command
from huggingface_hub import constants

from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files import memory, opening
from responses_app.server.model_files import prepare as prepare_module
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import Prepared, prepare
from responses_app.server.model_files.sizes import GIB
from tests.support.hub.server import ModelHub


class Usage(NamedTuple):
    """Result of shutil.disk_usage."""

    total: int
    used: int
    free: int


@pytest.fixture(autouse=True)
def free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_memory(monkeypatch, 16)


def _set_memory(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    monkeypatch.setattr(prepare_module, "machine", lambda *_: memory.Machine("CPU", int(gib * GIB)))


def _prepare(*models: str, fit: bool = False) -> tuple[Prepared, str]:
    out = io.StringIO()
    setting = " ".join(f"{name.partition('?')[0]}=vllm:///{name}" for name in models)
    return prepare(setting, Progress(out), fit, lambda: False), out.getvalue()


def _problem(model: str, **options: Any) -> str:
    with pytest.raises(CannotServe) as raised:
        _prepare(model, **options)
    return str(raised.value)


def _add_large(hub: ModelHub, demo: Path, name: str = "o/large", gigabytes: float = 4.0, **config: Any) -> None:
    """Add a repository whose listed weights are large, with the tokenizer and the template of the demo model."""
    hub.add_folder(name, demo, claimed_sizes={"model.safetensors": int(gigabytes * 10**9)})
    values = json.loads((demo / "config.json").read_text())
    text = {
        "num_hidden_layers": 32,
        "layer_types": ["full_attention"] * 32,
        "num_key_value_heads": 8,
        "num_attention_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 131072,
        **config,
    }
    if "text_config" in values:
        values["text_config"] |= text
    hub.repositories[name].files["config.json"] = json.dumps(values | text).encode()


def test_without_vllm_nothing_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_module, "find_spec", lambda _: None)
    assert "o/m needs the package vllm, which is not installed" in _problem("o/m")


def test_start_says_what_will_happen_before_weights_are_downloaded(hub: ModelHub, demo_folder: Path) -> None:
    hub.add_folder("demo/chat", demo_folder)
    prepared, shown = _prepare("demo/chat")
    assert hub.ranges("model.safetensors") == []
    for line in (
        f"from      {hub.url}/demo/chat at main (commit ",
        "family    Hermes calls (reasoning parser qwen3, tool parser hermes), chosen by",
        "works     tools, parallel calls, reasoning, images",
        "context   32,768 tokens",
        "download  10.8 MB in 1 file",
        "memory    weights 0.0 GiB + KV cache 1.0 GiB + engine 1.5 GiB = 2.5 GiB, of 16.0 GiB free (CPU)",
    ):
        assert line in shown
    assert list(prepared.downloads) == ["demo/chat"]


def test_model_in_the_cache_starts_without_a_request(hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_folder("demo/chat", demo_folder)
    first, _ = _prepare("demo/chat")
    opening.download_all(first.downloads, Progress(io.StringIO()))
    assert constants.HF_HUB_OFFLINE
    hub.requests.clear()
    for offline in (False, True):
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
        second, shown = _prepare("demo/chat")
        assert (second.downloads, shown, hub.requests) == ({}, "", [])
        assert second.setting == first.setting


def test_a_model_that_misses_a_file_in_the_cache_is_completed(hub: ModelHub, demo_folder: Path) -> None:
    hub.add_folder("demo/chat", demo_folder)
    prepared, _ = _prepare("demo/chat")
    opening.download_all(prepared.downloads, Progress(io.StringIO()))
    snapshot = prepared.downloads["demo/chat"].repository.snapshot
    constants.HF_HUB_OFFLINE = False
    (snapshot / "preprocessor_config.json").unlink()
    again, _ = _prepare("demo/chat")
    assert (snapshot / "preprocessor_config.json").exists()
    assert not again.downloads["demo/chat"].files


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("demo/chatt", "Similar names: demo/chat"),
        ("demo-cha", "Similar names: demo-chat"),
        ("demo/chat@v9", "the model has no revision 'v9': see http:"),
        ("demo/private", "has no model of this name, or the model is private."),
        ("demo/gated", "demo/gated: the model is gated: accept its terms at http:"),
        ("demo/files", "demo/files holds weights as GGUF, a format of llama.cpp that is not supported: use the original model, "
                       "such as --model demo/chat."),
        ("demo/lora", "demo/lora is a LoRA adapter of demo/chat, which is no model by itself: serve --model demo/chat with --lora"),
        ("demo/empty", "demo/empty holds no config.json"),
        ("demo/new", "has no architecture Qwen99ForCausalLM; similar architectures: Qwen"),
        ("demo/embed", "BertModel generates no text: the model is for embeddings, scores or drafts."),
        ("demo/bare", "demo/bare holds no weights (*.safetensors)"),
        ("a/b c", "no name of a model: Repo id must use alphanumeric chars"),
    ],
)  # fmt: skip
def test_model_that_cannot_be_served_is_refused(hub: ModelHub, demo_folder: Path, model: str, sentence: str) -> None:
    hub.add_folder("demo/chat", demo_folder)
    hub.add_folder("demo/private", demo_folder, token="secret")
    hub.add_folder("demo/gated", demo_folder, gated_token="secret")
    hub.add("demo/files", {"model-q4.gguf": b"GGUF"}, base_model="demo/chat")
    hub.add("demo/lora", {"adapter_config.json": b"{}", "adapter_model.safetensors": b""}, base_model="demo/chat")
    hub.add("demo/empty", {"README.md": b""})
    for name, architecture in (("demo/new", "Qwen99ForCausalLM"), ("demo/embed", "BertModel")):
        hub.add_folder(name, demo_folder)
        hub.repositories[name].files["config.json"] = json.dumps({"architectures": [architecture]}).encode()
    hub.add_folder("demo/bare", demo_folder)
    del hub.repositories["demo/bare"].files["model.safetensors"]
    assert sentence in _problem(model.replace(" ", "%20"))


@pytest.mark.parametrize(
    ("model", "token", "sentence"),
    [
        ("demo/private", "other", "The token of HF_TOKEN was sent: use one that may read demo/private, from http"),
        ("demo/gated", "other", "The token of HF_TOKEN was sent: use one that belongs to the account that accepted them"),
        ("demo/gated", "wrong", "refuses the token (401). The token of HF_TOKEN was sent: use one that is valid"),
    ],
)
def test_refused_tokens_are_named(
    hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch, model: str, token: str, sentence: str
) -> None:
    hub.add_folder("demo/private", demo_folder, token="secret")
    hub.add_folder("demo/gated", demo_folder, gated_token="secret")
    monkeypatch.setenv("HF_TOKEN", token)
    problem = _problem(model)
    assert sentence in problem
    assert f" {token} " not in problem


def test_the_token_opens_private_and_gated_models(hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.add_folder("demo/private", demo_folder, token="secret")
    hub.add_folder("demo/gated", demo_folder, gated_token="secret")
    monkeypatch.setenv("HF_TOKEN", "secret")
    assert list(_prepare("demo/private", "demo/gated")[0].downloads) == ["demo/private", "demo/gated"]


@pytest.mark.parametrize(
    ("status", "sentence"),
    [(500, "has a failure (500). Try again in some minutes"), (429, "limits the rate of requests (429)"), (403, "forbids the")],
)
def test_failures_of_the_hub_are_named(hub: ModelHub, status: int, sentence: str) -> None:
    hub.status = status
    assert sentence in _problem("demo/chat")


def test_unreachable_hub_is_named_with_the_models_of_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "models--demo--other").mkdir(parents=True)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    problem = _problem("demo/chat")
    assert problem.startswith("demo/chat: http://127.0.0.1:9 cannot be reached ([Errno 111] Connection refused). Check the")
    assert problem.endswith("--model NAME=FOLDER. In the cache: demo/other.")


def test_offline_mode_is_named(hub: ModelHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE=1 forbids downloads, and the model is not complete in " in _problem("demo/chat")
    assert hub.requests == []


def test_a_disk_that_is_too_small_is_refused_before_the_download(
    hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_large(hub, demo_folder)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**10, 0, 10**9))
    assert "the download needs 4.0 GB, and 1.0 GB are free at " in _problem("o/large")
    assert hub.ranges("model.safetensors") == []


def test_the_largest_context_that_fits_is_offered_and_taken(
    hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_large(hub, demo_folder, torch_dtype="bfloat16")
    # 4 GB of weights, 1.5 GiB for the engine, and 128 KiB for each token: 8,192 tokens need 1 GiB.
    _set_memory(monkeypatch, 6.5)
    problem = _problem("o/large?max_model_len=16384")
    assert problem.startswith(
        "o/large needs weights 3.7 GiB + KV cache 2.0 GiB + engine 1.5 GiB = 7.2 GiB of memory for 16,384 tokens"
    )
    assert problem.endswith("has 6.5 GiB free. 8,192 tokens fit: add --fit, or ?max_model_len=8192 to the engine URL.")
    prepared, shown = _prepare("o/large?max_model_len=16384", fit=True)
    assert prepared.setting.endswith("?max_model_len=8192")
    assert "context   8,192 tokens of 131,072" in shown


def test_weights_that_do_not_fit_are_refused(hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_large(hub, demo_folder)
    _set_memory(monkeypatch, 2)
    assert "Not even a short context fits: choose a smaller or quantized model, or free memory." in _problem(
        "o/large", fit=True
    )


def test_models_that_do_not_fit_together_are_named(hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("o/a", "o/b", "o/c"):
        _add_large(hub, demo_folder, name, torch_dtype="bfloat16")
    _set_memory(monkeypatch, 14)
    with pytest.raises(CannotServe, match=r"^o/c needs .* free beside o/a, o/b.* These models fit together: o/a, o/b\.$"):
        _prepare("o/a", "o/b", "o/c")
    assert len(_prepare("o/a", "o/b")[0].downloads) == 2


def test_a_cache_that_the_operator_has_set_limits_the_context(
    hub: ModelHub, demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add_large(hub, demo_folder, torch_dtype="bfloat16")
    monkeypatch.setenv("VLLM_CPU_KVCACHE_SPACE", "1")
    problem = _problem("o/large?max_model_len=20000")
    assert "needs 2.4 GiB of KV cache for 20,000 tokens of context, and 1.0 GiB are set (VLLM_CPU_KVCACHE_SPACE" in problem
    assert "8,192 tokens fit" in problem


def test_other_engines_are_left_as_they_are(demo_folder: Path) -> None:
    setting = f"a=http://127.0.0.1:1?tokenizer={demo_folder} b=script:///tape"
    assert prepare(setting, Progress(io.StringIO()), False, lambda: False) == Prepared(setting, {})


@pytest.mark.parametrize("tokenizer", ["/nonexistent/tokenizer", "./nonexistent"])
def test_a_tokenizer_that_is_no_folder_is_named(tokenizer: str) -> None:
    with pytest.raises(CannotServe, match=f"^a: tokenizer {tokenizer}: there is no such folder.$"):
        prepare(f"a=http://127.0.0.1:1?tokenizer={tokenizer}", Progress(io.StringIO()), False, lambda: False)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("notes.txt", "text", "holds no tokenizer (tokenizer.json or tokenizer.model): give the folder of the model"),
        ("tokenizer.json", '{"model":', "holds a tokenizer.json that is not valid JSON, perhaps half downloaded"),
        (
            "tokenizer.json",
            "version https://git-lfs.github.com/spec/v1",
            "holds a pointer of Git LFS in place of tokenizer.json",
        ),
        ("config.json", "[]", "holds a config.json that is not a JSON object"),
    ],
)
def test_folder_without_a_whole_tokenizer_is_named(tmp_path: Path, name: str, content: str, problem: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(CannotServe) as refused:
        prepare(f"a=http://127.0.0.1:1?tokenizer={tmp_path}", Progress(io.StringIO()), False, lambda: False)
    assert str(refused.value).startswith(f"a: tokenizer {tmp_path} {problem}")
    with pytest.raises(CannotServe, match="is a file: give the folder with tokenizer"):
        prepare(f"a=http://127.0.0.1:1?tokenizer={tmp_path / name}", Progress(io.StringIO()), False, lambda: False)


def test_the_command_model_downloads_the_small_files_alone(hub: ModelHub, demo_folder: Path) -> None:
    hub.add_folder("demo/chat", demo_folder)
    out = io.StringIO()
    call_command("model", "demo/chat", stdout=out)
    assert "family            Hermes calls" in out.getvalue()
    assert hub.ranges("model.safetensors") == []
    with pytest.raises(CommandError, match=r"Similar names: demo/chat\."):
        call_command("model", "demo/chatt")
