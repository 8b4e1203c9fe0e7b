"""Turn the committed files of a demo model into a checkpoint folder that vLLM can load."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from responses_app.demo.packing import Floats

_HERE = Path(__file__).parent
_STAMP = ".built-from"
_CODE = ["build.py", "packing.py", "rows.py", "o200k.py", "o200k_files.py"]
FOLDERS = {"demo-chat": _HERE / "chat_files", "demo-harmony": _HERE / "harmony_files"}
# Read by the build itself; everything else in the folder is copied as it is.
_INGREDIENTS = {"weights.safetensors", "rows.txt"}


def digest(name: str) -> str:
    """Says whether a build is up to date: it covers the committed files and the code that expands them."""
    total = hashlib.sha256()
    for path in sorted(FOLDERS[name].iterdir()) + [_HERE / c for c in _CODE]:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def build(name: str, into: Path) -> Path:
    """Write the checkpoint `name` into `into/name`, unless it is there already, and return its path."""
    target, wanted = into / name, digest(name)
    if _stamp(target) == wanted:
        return target
    into.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=into))
    try:
        _fill(name, work)
        (work / _STAMP).write_text(wanted)
        work.chmod(0o755)
        _swap(work, target, wanted)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def _stamp(folder: Path) -> str:
    try:
        return (folder / _STAMP).read_text()
    except OSError:
        return ""


def _swap(work: Path, target: Path, wanted: str) -> None:
    """Put the finished folder in place; a rename can lose to another process that built the same."""
    old = work.with_name(work.name + "-old")
    if target.exists():
        os.rename(target, old)
    try:
        os.rename(work, target)
    except OSError:
        if _stamp(target) != wanted:
            raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _fill(name: str, work: Path) -> None:
    from safetensors.numpy import load_file

    from responses_app.demo.packing import unpack, write_bfloat16

    for path in FOLDERS[name].iterdir():
        if path.name not in _INGREDIENTS:
            shutil.copyfile(path, work / path.name)
    tensors = unpack(load_file(FOLDERS[name] / "weights.safetensors"))
    write_bfloat16(_EXPAND[name](tensors, work), work / "model.safetensors")


def _expand_chat(tensors: dict[str, Floats], _: Path) -> dict[str, Floats]:
    return tensors


def _expand_harmony(tensors: dict[str, Floats], work: Path) -> dict[str, Floats]:
    """The committed rows among those that every token starts with, once for reading and once for writing."""
    import numpy as np

    from responses_app.demo.o200k_files import special_names, tokenizer_json
    from responses_app.demo.rows import starting_rows

    (work / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    used = np.array([int(line) for line in (FOLDERS["demo-harmony"] / "rows.txt").read_text().split()])
    some = tensors.pop("model.embed_tokens.weight")
    rows = starting_rows(spellings(special_names()), some.shape[1])
    rows[used] = some
    return tensors | {"model.embed_tokens.weight": rows, "lm_head.weight": rows}


def spellings(special: list[str]) -> list[bytes]:
    """What every token of gpt-oss looks like: the ground on which starting rows are made."""
    from responses_app.demo import o200k

    return o200k.pieces() + [s.encode() for s in special]


_EXPAND: dict[str, Callable[[dict[str, Floats], Path], dict[str, Floats]]] = {
    "demo-chat": _expand_chat,
    "demo-harmony": _expand_harmony,
}
