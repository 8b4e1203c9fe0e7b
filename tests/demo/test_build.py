"""The demo models: a build is complete, is made once, and is small enough to commit."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from responses_app.demo import build as building
from responses_app.demo.packing import bfloat16, pack, unpack
from responses_app.demo.spelling import MORE

NEEDED = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
}


@pytest.fixture(scope="module")
def chat_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return building.build("demo-chat", tmp_path_factory.mktemp("models"))


def _header(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    size = struct.unpack("<Q", raw[:8])[0]
    header: dict[str, Any] = json.loads(raw[8 : 8 + size])
    return header


def test_a_build_has_every_file_that_an_engine_asks_for(chat_folder: Path) -> None:
    assert {p.name for p in chat_folder.iterdir()} >= NEEDED


def test_the_weights_have_the_shapes_of_the_configuration(chat_folder: Path) -> None:
    config = json.loads((chat_folder / "config.json").read_text())["text_config"]
    header = _header(chat_folder / "model.safetensors")
    assert header["model.text_model.embed_tokens.weight"]["shape"] == [config["vocab_size"], config["hidden_size"]]
    assert header["model.text_model.embed_tokens.weight"]["dtype"] == "BF16"
    layers = {name.split(".")[3] for name in header if name.startswith("model.text_model.layers.")}
    assert len(layers) == config["num_hidden_layers"]


def test_the_tokenizer_agrees_with_the_configuration(chat_folder: Path) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(chat_folder / "tokenizer.json"))
    config = json.loads((chat_folder / "config.json").read_text())["text_config"]
    assert tokenizer.get_vocab_size() == config["vocab_size"]
    assert tokenizer.token_to_id("<|im_end|>") == config["eos_token_id"]
    text = "Zürich 1234 привет 你好 🦑 get_weather('x')"
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


@pytest.mark.parametrize(
    "marker", ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
)
def test_marker_is_a_single_token(chat_folder: Path, marker: str) -> None:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(chat_folder / "tokenizer.json"))
    assert tokenizer.encode(marker).ids == [tokenizer.token_to_id(marker)]
    assert tokenizer.decode(tokenizer.encode(marker).ids) == marker


def test_an_up_to_date_build_is_left_alone(chat_folder: Path) -> None:
    before = (chat_folder / "model.safetensors").stat().st_mtime_ns
    assert building.build("demo-chat", chat_folder.parent) == chat_folder
    assert (chat_folder / "model.safetensors").stat().st_mtime_ns == before


def test_an_old_build_is_replaced(tmp_path: Path) -> None:
    folder = building.build("demo-chat", tmp_path)
    (folder / ".built-from").write_text("something older")
    (folder / "stray").write_text("from before")
    assert building.build("demo-chat", tmp_path) == folder
    assert not (folder / "stray").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["demo-chat"]


def test_a_failed_build_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(building, "_fill", fail)
    with pytest.raises(RuntimeError):
        building.build("demo-chat", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_digest_sees_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(building.FOLDERS, "demo-chat", tmp_path)
    before = building.digest("demo-chat")
    (tmp_path / "config.json").write_text("{ }")
    assert building.digest("demo-chat") != before


def test_the_harmony_files_fit_together() -> None:
    """Expanding all 201,088 rows takes seconds, so here only the committed side is looked at."""
    from safetensors.numpy import load_file

    folder = building.FOLDERS["demo-harmony"]
    config = json.loads((folder / "config.json").read_text())
    rows = [int(line) for line in (folder / "rows.txt").read_text().split()]
    tensors = unpack(load_file(folder / "weights.safetensors"))
    width = config["hidden_size"] - MORE
    assert tensors["model.embed_tokens.weight"].shape == (len(rows), width)
    assert rows == sorted(set(rows))
    assert rows[-1] < config["vocab_size"]
    assert {200002, 200003, 200005, 200006, 200007, 200008, 200012} <= set(rows)
    experts = tensors["model.layers.0.mlp.experts.gate_up_proj"].shape
    assert experts == (config["num_local_experts"], width, 2 * config["intermediate_size"])


def test_everything_committed_stays_small() -> None:
    total = sum(p.stat().st_size for folder in building.FOLDERS.values() for p in folder.rglob("*") if p.is_file())
    assert total < 12_000_000


def test_packing_loses_little() -> None:
    value = np.random.default_rng(0).standard_normal((8, 64)).astype(np.float32)
    back = unpack(pack({"w": value, "b": value[0]}, 127))
    assert np.abs(back["w"] - value).max() < 0.02
    assert np.array_equal(back["b"], value[0])


def test_bfloat16_rounds_to_the_nearest() -> None:
    bits = bfloat16(np.array([1.0, 1.00390625, 1.01171875, -2.0, 0.0], dtype=np.float32))
    assert bits.tolist() == [0x3F80, 0x3F80, 0x3F82, 0xC000, 0]
