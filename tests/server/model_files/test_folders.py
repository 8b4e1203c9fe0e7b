"""Checks of folders: kinds of models, and completeness of weights."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from responses_app.server.model_files.folders import folder_problem, weights_size


def _shards(folder: Path, *present: str) -> None:
    """Split the weights into two files, of which only `present` are there."""
    weights = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    names = ("model-1.safetensors", "model-2.safetensors")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {name: name for name in names}}))
    for name in present:
        (folder / name).write_bytes(weights)


def _cut(folder: Path) -> None:
    with (folder / "model.safetensors").open("r+b") as file:
        file.truncate(5_000_000)


def _remove(*names: str) -> Callable[[Path], None]:
    def remove(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return remove


def _write(name: str, content: bytes, *removed: str) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        _remove(*removed)(folder)
        (folder / name).write_bytes(content)

    return write


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda _: None, None),
        (lambda folder: _shards(folder, "model-1.safetensors", "model-2.safetensors"), None),
        (lambda folder: _shards(folder, "model-1.safetensors"), "is half downloaded: model-2.safetensors of 2 files with weights missing"),
        (_cut, "is half downloaded: model.safetensors has 5,000,000 of 10,766,816 bytes"),
        (_remove("model.safetensors"), "holds no weights (*.safetensors)"),
        (_remove("config.json"), "holds no config.json, so there is no checkpoint"),
        (_remove("tokenizer.json", "tokenizer_config.json"), "holds no tokenizer"),
        (_write("model.safetensors", POINTER), "holds a pointer of Git LFS in place of model.safetensors: download or copy the folder"),
        (_write("model.safetensors", b"<html>"), "holds a model.safetensors that is not in the format of safetensors"),
        (_write("tokenizer.json", b'{"model":'), "holds a tokenizer.json that is not valid JSON, perhaps half downloaded"),
        (_write("model.gguf", b"GGUF", "model.safetensors"), "holds weights as GGUF"),
        (_write("model.gguf", b"GGUF", "config.json"), "holds weights as GGUF"),
        (_write("adapter_config.json", b'{"base_model_name_or_path": "o/m"}', "config.json"), "is a LoRA adapter of o/m"),
    ],
)  # fmt: skip
def test_folder_problem_names_what_is_wrong(
    tmp_path: Path, demo_folder: Path, change: Callable[[Path], None], problem: str | None
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(demo_folder, folder)
    change(folder)
    actual_problem = folder_problem(folder)
    assert actual_problem is None if problem is None else actual_problem is not None and actual_problem.startswith(problem), (
        actual_problem
    )


def test_weights_size_counts_the_files_of_the_index(tmp_path: Path, demo_folder: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(demo_folder, folder)
    assert weights_size(folder) == 10_766_816
    _shards(folder, "model-1.safetensors", "model-2.safetensors")
    (folder / "consolidated.safetensors").write_bytes(b"x" * 99)
    assert weights_size(folder) == 2 * 10_766_816
