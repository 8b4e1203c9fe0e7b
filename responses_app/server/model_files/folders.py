"""Checks of a folder with a checkpoint: its kind, and the completeness of its weights."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from responses_app.server.model_files.repository import RepoFile, Repository
from responses_app.server.model_files.selection import INDEXES, WEIGHT_SUFFIXES, absent_parts, indexed_but_absent, indexed_files

# Text that replaces a file of the large file storage until `git lfs pull`.
LFS_POINTER = b"version https://git-lfs"
# Beginning of a weights file in the format of safetensors: the length of the header, which is JSON.
MAX_HEADER = 100 * 2**20
# Files that vLLM reads at its start.
JSON_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "tokenizer.json",
    "preprocessor_config.json",
    *INDEXES,
)
# What to do with damaged files of a folder.
COPY_AGAIN = "download or copy the folder again, with `git lfs pull` in a clone, or give the model by its name on the hub"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "vocab.txt", "tokenizer_config.json")


def folder_problem(folder: Path) -> str | None:
    """Return why the folder cannot be served, or None."""
    return kind_problem(folder) or weights_problem(folder)


def kind_problem(folder: Path, advice: str = COPY_AGAIN) -> str | None:
    """Return why the folder holds no checkpoint for vLLM, or None. `advice` is for damaged files."""
    if not (folder / "config.json").is_file() and not (folder / "params.json").is_file():
        if (folder / "adapter_config.json").is_file():
            return adapter_problem(read_object(folder / "adapter_config.json").get("base_model_name_or_path"))
        if any(folder.glob("*.gguf")):
            return gguf_problem()
        inner = [
            file.relative_to(folder).as_posix()
            for place in ("*", "snapshots/*")
            for file in folder.glob(f"{place}/config.json")
        ]
        return no_config_problem(inner, "give")
    for name in JSON_FILES:
        if (folder / name).is_file() and (problem := _json_problem(folder / name)):
            return f"{problem}: {advice}"
    if problem := next(filter(None, map(_text_problem, sorted(folder.glob("*.jinja")))), None):
        return f"{problem}: {advice}"
    if not any((folder / name).is_file() for name in TOKENIZERS) and not any(folder.glob("*.tiktoken")):
        return f"holds no tokenizer (tokenizer.json or tokenizer.model): {advice}"
    return embedding_problem(folder / "modules.json")


def tokenizer_problem(place: Path) -> str | None:
    """Return why a path of this machine holds no tokenizer, or None. Models of gpt-oss need config.json alone."""
    if not place.is_dir():
        return "is a file: give the folder with tokenizer.json or tokenizer.model"
    files = [place / name for name in ("config.json", *TOKENIZERS) if (place / name).is_file()]
    if not files and not any(place.glob("*.tiktoken")):
        return "holds no tokenizer (tokenizer.json or tokenizer.model): give the folder of the model, or its name on the hub"
    problem = next(filter(None, (_json_problem(file) for file in files if file.name in JSON_FILES)), None)
    return f"{problem}: {COPY_AGAIN}" if problem else None


def listed_kind_problem(listed: Repository) -> str | None:
    """Return why a repository holds no checkpoint for vLLM, or None."""
    names = {file.path for file in listed.files}
    if "config.json" in names or "params.json" in names:
        return None
    if "adapter_config.json" in names:
        return adapter_problem(next(iter(listed.base_models), None))
    if any(name.endswith(".gguf") for name in names):
        return gguf_problem(listed.base_models)
    if "model_index.json" in names:
        return "is a pipeline of diffusers, which makes pictures and no text"
    return no_config_problem(names, "download and give")


def listed_weights_problem(listed: Repository, weights: Sequence[RepoFile], may_lack: bool) -> str | None:
    """Return which weights a repository lacks, or None; `weights` are those to be downloaded, which `may_lack`."""
    if not weights and not may_lack:
        if any(file.path.endswith(".gguf") for file in listed.files):
            return gguf_problem(listed.base_models)
        return "holds no weights (*.safetensors): choose another model"
    if absent := indexed_but_absent(listed.files, listed.snapshot):
        return f"lacks weights that its index names, {few(absent)}: {listed.advice}"
    if absent := absent_parts(file.path for file in weights):
        return f"lacks weights by the names of the other files, {few(absent)}: {listed.advice}"
    return None


def no_config_problem(paths: Iterable[str], act: str) -> str:
    """Return the sentence for a place without config.json. `paths` are those of files in its folders."""
    inner = sorted(str(PurePosixPath(path).parent) for path in paths if PurePosixPath(path).name == "config.json")
    elsewhere = f"; one is in {few(inner)}: {act} that folder" if inner else ""
    return f"holds no config.json, so there is no checkpoint of a model{elsewhere}"


def embedding_problem(modules: Path) -> str | None:
    """Return the sentence for a model whose modules.json, of sentence-transformers, makes one vector of a text, or None."""
    try:
        kinds = [str(module.get("type")) for module in json.loads(modules.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError, AttributeError):
        return None
    if any(kind.endswith("Pooling") for kind in kinds):
        return "generates no text: the model is for embeddings (modules.json)"
    return None


def gguf_problem(base_models: tuple[str, ...] = ()) -> str:
    """Return the sentence for weights in the format GGUF."""
    other = f"such as --model {base_models[0]}" if base_models else "with config.json and *.safetensors"
    return f"holds weights as GGUF, a format of llama.cpp that is not supported: use the original model, {other}"


def adapter_problem(base: object) -> str:
    """Return the sentence for a LoRA adapter; `base` names the model."""
    of = f" of {base}" if isinstance(base, str) and base else ""
    whole = f"--model {base}" if of else "the base model"
    return f"is a LoRA adapter{of}, which is no model by itself: serve {whole} with --lora NAME=FOLDER"


def weights_problem(folder: Path, advice: str = COPY_AGAIN) -> str | None:
    """Return which weights are missing or incomplete, or None. Reads the headers of the files alone.

    The `advice` says what to do with damaged files.
    """
    for index in INDEXES:
        named = indexed_files(folder / index)
        if absent := sorted(name for name in named if not (folder / name).is_file()):
            return f"is half downloaded: {few(absent)} of {len(named)} files with weights missing; {advice}"
    files = [file for suffix in WEIGHT_SUFFIXES for file in sorted(folder.glob(f"*{suffix}"))]
    if not files:
        gguf = any(folder.glob("*.gguf"))
        return gguf_problem() if gguf else f"holds no weights (*.safetensors): {advice}"
    if absent := absent_parts(file.name for file in files):
        return f"lacks weights by the names of the other files: {few(absent)}; {advice}"
    problem = next(filter(None, map(_file_problem, files)), None)
    return f"{problem}: {advice}" if problem else None


def weights_size(folder: Path) -> int:
    """Return the bytes of the weights in a folder."""
    for index in INDEXES:
        if named := indexed_files(folder / index):
            return sum((folder / name).stat().st_size for name in named if (folder / name).is_file())
    for suffix in WEIGHT_SUFFIXES:
        if files := [file for file in folder.glob(f"*{suffix}") if not file.name.startswith("consolidated")]:
            return sum(file.stat().st_size for file in files)
    return 0


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object of a file; empty for a missing or invalid file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _json_problem(file: Path) -> str | None:
    """Return why a file is no JSON object."""
    if problem := _text_problem(file):
        return problem
    try:
        is_object = isinstance(json.loads(file.read_text(encoding="utf-8")), dict)
    except (ValueError, RecursionError):
        return f"holds a {file.name} that is not valid JSON, perhaps half downloaded"
    return None if is_object else f"holds a {file.name} that is not a JSON object"


def _text_problem(file: Path) -> str | None:
    """Return why a file is no text."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        return f"cannot be read: {file.name}: {error.strerror}"
    except UnicodeDecodeError:
        return f"holds a {file.name} that is not text in UTF-8"
    return _pointer_problem(file) if text.startswith(LFS_POINTER.decode()) else None


def _file_problem(file: Path) -> str | None:
    """Return why a file with weights is not whole."""
    try:
        size = file.stat().st_size
        with file.open("rb") as opened:
            start = opened.read(len(LFS_POINTER))
            if start == LFS_POINTER:
                return _pointer_problem(file)
            if file.suffix != ".safetensors":
                return None
            opened.seek(0)
            expected = _safetensors_size(opened.read(8), opened.read)
    except OSError as error:
        return f"cannot be read: {file.name}: {error.strerror}"
    if expected is None:
        return f"holds a {file.name} that is not in the format of safetensors, or broken"
    if size < expected:
        return f"is half downloaded: {file.name} has {size:,} of {expected:,} bytes"
    return None


def _safetensors_size(length: bytes, read: Any) -> int | None:
    """Return the size of a whole safetensors file by the header, None for an invalid header."""
    if len(length) < 8 or (header_size := struct.unpack("<Q", length)[0]) > MAX_HEADER:
        return None
    try:
        tensors = json.loads(read(header_size))
        ends = [tensor["data_offsets"][1] for name, tensor in tensors.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
    return 8 + int(header_size) + int(max(ends, default=0))


def _pointer_problem(file: Path) -> str:
    return f"holds a pointer of Git LFS in place of {file.name}"


def few(names: list[str]) -> str:
    """Return the first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
