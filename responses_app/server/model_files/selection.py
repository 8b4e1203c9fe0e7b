"""Selection of the files of a repository that a server needs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from responses_app.server.model_files.repository import RepoFile

SMALL_SUFFIXES = (".json", ".jinja", ".txt", ".model", ".tiktoken", ".py")
TEMPLATES = "additional_chat_templates"
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
# Formats of weights that vLLM loads, the best first.
WEIGHT_SUFFIXES = (".safetensors", ".bin", ".pt")
# Weights that repeat those of the other files, and files of trainers.
_PART = re.compile(r"(?P<stem>[^/]+)-\d{5}-of-(?P<count>\d{5})(?P<suffix>\.safetensors|\.bin)")
MAX_PARTS = 2000
_REPEATED = ("consolidated", "training_args", "optimizer", "scheduler", "adapter_model")


def small_files(files: Iterable[RepoFile]) -> tuple[RepoFile, ...]:
    """Return the files beside the weights: configuration, tokenizer and chat templates."""
    return tuple(file for file in files if _is_small(PurePosixPath(file.path)))


def is_listed_complete(name: str, snapshot: Path) -> bool:
    """Return False if the cache knows of small files of the snapshot that are missing."""
    from huggingface_hub import get_cached_repo_tree
    from huggingface_hub.errors import CachedRepoTreeNotFoundError

    try:
        tree = get_cached_repo_tree(name, revision=snapshot.name)
    except CachedRepoTreeNotFoundError:
        return True
    files = [RepoFile(file.path, file.size, None, file.blob_id) for file in tree]
    return all((snapshot / file.path).exists() for file in small_files(files))


def weight_files(files: Sequence[RepoFile], snapshot: Path) -> tuple[RepoFile, ...]:
    """Return the files with weights; `snapshot` holds the small files. An index names these files, if there is an index."""
    for index in INDEXES:
        named = indexed_files(snapshot / index)
        if listed := tuple(file for file in files if file.path in named):
            return listed
    for suffix in WEIGHT_SUFFIXES:
        weights = [file for file in files if file.path.endswith(suffix) and "/" not in file.path]
        if exact := tuple(file for file in weights if file.path in ("model.safetensors", "pytorch_model.bin")):
            return exact
        chosen = tuple(file for file in weights if not file.path.startswith(_REPEATED))
        if chosen or weights:
            return chosen or tuple(weights)
    return ()


def indexed_but_absent(files: Iterable[RepoFile], snapshot: Path) -> list[str]:
    """Return the files with weights that the first index of the snapshot names and the repository does not have."""
    there = {file.path for file in files}
    named = next(filter(None, (indexed_files(snapshot / index) for index in INDEXES if index in there)), frozenset())
    return sorted(named - there)


def indexed_files(index: Path) -> frozenset[str]:
    """Return the names of the files with weights that an index lists; empty without an index or for invalid JSON."""
    try:
        named = json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
    return frozenset(name for name in map(str, named) if is_safe(name))


def absent_parts(names: Iterable[str]) -> list[str]:
    """Return the files that are missing among those named `…-00001-of-00003…`, by the names of the others."""
    there = frozenset(names)
    parts = {(match["stem"], int(match["count"]), match["suffix"]) for match in map(_PART.fullmatch, there) if match}
    expected = {
        f"{stem}-{number:05}-of-{count:05}{suffix}"
        for stem, count, suffix in parts
        for number in range(1, min(count, MAX_PARTS) + 1)
    }
    return sorted(expected - there)


def is_safe(path: str) -> bool:
    """Return True for a relative path inside of the folder."""
    parts = PurePosixPath(path)
    return not parts.is_absolute() and ".." not in parts.parts


def _is_small(path: PurePosixPath) -> bool:
    return path.suffix in SMALL_SUFFIXES and (len(path.parts) == 1 or path.parts[:-1] == (TEMPLATES,))
