"""Models whose files on the hub are damaged or unusual: a sentence that names the file, before the download or at its end."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from responses_app.server.bootstrap.progress import Progress
from responses_app.server.model_files import memory, opening
from responses_app.server.model_files import prepare as prepare_module
from responses_app.server.model_files.errors import CannotServe
from responses_app.server.model_files.prepare import Prepared, prepare
from responses_app.server.model_files.sizes import GIB
from tests.support.hub.server import ModelHub

ADVICE: Final = ": choose another model, or another revision of o/m (NAME@REVISION)."
POINTER: Final = b"version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 4000000000\n"
SHARDS: Final = {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}

Files = dict[str, bytes]


@pytest.fixture(autouse=True)
def enough_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare_module, "machine", lambda *_: memory.Machine("CPU", 16 * GIB))


@pytest.fixture
def files(hub: ModelHub, demo_folder: Path) -> Files:
    """Files of the model o/m on the hub, which a test may change."""
    hub.add_folder("o/m", demo_folder)
    return hub.repositories["o/m"].files


def _prepare() -> tuple[Prepared, str]:
    out = io.StringIO()
    return prepare("o/m=vllm:///o/m", Progress(out), False, lambda: False), out.getvalue()


def _configure(**more: Any) -> Callable[[Files], None]:
    """Return a function that changes values of config.json."""

    def change(files: Files) -> None:
        files["config.json"] = json.dumps(json.loads(files["config.json"]) | more).encode()

    return change


def _template_list(value: Any) -> Callable[[Files], None]:
    """Return a function that puts chat templates into tokenizer_config.json."""

    def change(files: Files) -> None:
        files["tokenizer_config.json"] = json.dumps(
            json.loads(files["tokenizer_config.json"]) | {"chat_template": value}
        ).encode()

    return change


def _write(name: str, content: bytes) -> Callable[[Files], None]:
    """Return a function that replaces a file."""
    return lambda files: files.update({name: content})


def _remove_tokenizer(files: Files) -> None:
    for name in [name for name in files if "token" in name or name in ("vocab.json", "merges.txt")]:
        del files[name]


def _lose_a_shard(files: Files) -> None:
    files["model.safetensors.index.json"] = json.dumps({"weight_map": SHARDS}).encode()
    files[SHARDS["a"]] = files.pop("model.safetensors")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (_write("config.json", b"{"), "o/m holds a config.json that is not valid JSON, perhaps half downloaded" + ADVICE),
        (_write("config.json", b"[" * 5000), "o/m holds a config.json that is not valid JSON, perhaps half downloaded" + ADVICE),
        (_write("config.json", b"null"), "o/m holds a config.json that is not a JSON object" + ADVICE),
        (_write("config.json", b"\xff\xfe{}"), "o/m holds a config.json that is not text in UTF-8" + ADVICE),
        (_write("generation_config.json", b"{"), "o/m holds a generation_config.json that is not valid JSON"),
        (_write("generation_config.json", b"[1]"), "o/m holds a generation_config.json that is not a JSON object" + ADVICE),
        (_write("generation_config.json", b""), "o/m holds a generation_config.json that is not valid JSON"),
        (_write("generation_config.json", b'{"top_k": "x"}'), "o/m/generation_config.json: top_k is 'x', in place of a number"),
        (_write("generation_config.json", b'{"eos_token_id": "<s>"}'), "generation_config.json of o/m has the eos_token_id '<s>'"),
        (_write("config.json", b"\xef\xbb\xbf{}"), "o/m holds a config.json that is not valid JSON"),
        (_write("tokenizer_config.json", b"[]"), "o/m holds a tokenizer_config.json that is not a JSON object" + ADVICE),
        (_write("tokenizer.json", b"<html>"), "o/m holds a tokenizer.json that is not valid JSON"),
        (_write("special_tokens_map.json", b'{"eos_token": 5}'), "the configuration, the tokenizer or the chat template cannot be opened"),
        (_write("chat_template.jinja", b"{% if %}"), "The chat template of o/m cannot be read, line 1: Expected an expression"),
        (_write("chat_template.jinja", b" "), "o/m has no chat template, as models that only continue text. Choose"),
        (_write("preprocessor_config.json", b"{"), "o/m holds a preprocessor_config.json that is not valid JSON"),
        (_write("model.safetensors.index.json", b"{"), "o/m holds a model.safetensors.index.json that is not valid JSON"),
        (_write("chat_template.jinja", b"\xff"), "o/m holds a chat_template.jinja that is not text in UTF-8" + ADVICE),
        (_write("tokenizer.json", POINTER), "o/m holds a pointer of Git LFS in place of tokenizer.json"),
        (_remove_tokenizer, "o/m holds no tokenizer (tokenizer.json or tokenizer.model)" + ADVICE),
        (_lose_a_shard, "o/m lacks weights that its index names, model-00002-of-00002.safetensors" + ADVICE),
        (lambda files: files.pop("chat_template.jinja"), "o/m has no chat template, as models that only continue text. Choose"),
        (_template_list(7), "tokenizer_config.json has a chat_template that is neither a text nor a list: correct the file"),
        (_template_list(["{{ x }}"]), "tokenizer_config.json has a chat_template whose entry 1 is no object with the texts 'name'"),
        (_template_list([{"name": "a", "template": "x"}, {"name": "b"}]), "tokenizer_config.json has a chat_template whose entry 2 is no"),
        (_template_list({"default": 7}), "tokenizer_config.json has a chat_template whose entry 1 is no object with the texts 'name'"),
        (_configure(is_encoder_decoder=True, architectures=["T5ForConditionalGeneration"]), "T5ForConditionalGeneration continues no chat"),
    ],
)  # fmt: skip
def test_damage_is_named_before_the_download(
    hub: ModelHub, files: Files, damage: Callable[[Files], Any], sentence: str
) -> None:
    damage(files)
    with pytest.raises(CannotServe) as raised:
        _prepare()
    assert str(raised.value).removeprefix("o/m: ").startswith(sentence)
    assert hub.ranges("model.safetensors") == []


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [(POINTER, "a pointer of Git LFS in place of model.safetensors"), (bytes(200), "that is not in the format of safetensors")],
)
def test_damaged_weights_are_named_after_the_download(files: Files, weights: bytes, sentence: str) -> None:
    files["model.safetensors"] = weights
    prepared, _ = _prepare()
    with pytest.raises(CannotServe) as raised:
        opening.download_all(prepared.downloads, Progress(io.StringIO()))
    assert sentence in str(raised.value)
    assert str(raised.value).endswith(ADVICE)


@pytest.mark.parametrize(
    ("config", "warning"),
    [
        ({"model_type": "unheard"}, "and transformers list no model_type 'unheard' (config.json): the start may fail."),
        ({"quantization_config": {"quant_method": "unheard"}}, "lists no quantization 'unheard' (quant_method in config.json)"),
    ],
)
def test_unlisted_kinds_are_a_warning(files: Files, config: dict[str, Any], warning: str) -> None:
    _configure(**config)(files)
    assert warning in _prepare()[1]


@pytest.mark.parametrize("method", ["awq", "fp8", "compressed-tensors", "auto-round"])
def test_listed_quantization_is_no_warning(files: Files, method: str) -> None:
    _configure(quantization_config={"quant_method": method})(files)
    assert "may fail" not in _prepare()[1]
