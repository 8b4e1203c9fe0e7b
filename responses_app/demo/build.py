"""Turn the committed files of a demo model into a checkpoint folder that vLLM can load."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from responses_app.demo.packing import Floats

_HERE = Path(__file__).parent
_STAMP = ".built-from"
_CODE = ["build.py", "packing.py", "rows.py", "spelling.py", "growing.py", "o200k.py", "o200k_files.py"]
FOLDERS = {
    "demo-chat": _HERE / "chat_files",
    "demo-harmony": _HERE / "harmony_files",
}
# The weights of the text model, and of the image encoder of demo-chat.
WEIGHTS, EYES = "weights.safetensors", "eyes.safetensors"
# Read by the build itself; everything else in the folder is copied as it is.
_INGREDIENTS = {WEIGHTS, EYES, "rows.txt"}
_HEAD, _IDLE_HEADS = 64, 2
_PICTURE_TOKENS = ("<image>", "<fake_token_around_image>", "<global-img>")


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
    from responses_app.demo.packing import write_bfloat16

    for path in FOLDERS[name].iterdir():
        if path.name not in _INGREDIENTS:
            shutil.copyfile(path, work / path.name)
    write_bfloat16(_EXPAND[name](work), work / "model.safetensors")


def _read(path: Path) -> dict[str, Floats]:
    from safetensors.numpy import load_file

    from responses_app.demo.packing import unpack

    return unpack(load_file(path))


def _expand_chat(work: Path) -> dict[str, Floats]:
    """Join the text model, with rows for the marks of images, and the image encoder."""
    import numpy as np

    image_tokenizer().save(str(work / "tokenizer.json"))
    text, images = _text_model(), _read(FOLDERS["demo-chat"] / EYES)
    rows = "model.embed_tokens.weight"
    text[rows] = np.concatenate((text[rows], images.pop("model.marks")))
    return {name.replace("model.", "model.text_model.", 1): value for name, value in text.items()} | images


def _text_model() -> dict[str, Floats]:
    """Add two idle heads to each layer: transformers requires a width that is a multiple of the number of heads."""
    import numpy as np

    tensors, more = _read(FOLDERS["demo-chat"] / WEIGHTS), _IDLE_HEADS * _HEAD
    for name, value in tensors.items():
        if ".self_attn." in name and name != "model.embed_tokens.weight":
            rows = 0 if ".o_proj." in name else more
            columns = more if name.endswith(".o_proj.weight") else 0
            tensors[name] = np.pad(value, [(0, rows), (0, columns)][: value.ndim])
    return tensors


def image_tokenizer() -> Any:
    """Load the committed tokenizer and add the marks of images behind all other tokens."""
    from tokenizers import AddedToken, Tokenizer

    tokenizer = Tokenizer.from_file(str(FOLDERS["demo-chat"] / "tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in _PICTURE_TOKENS])
    return tokenizer


def _expand_harmony(work: Path) -> dict[str, Floats]:
    """The committed rows among those that every token starts with, once for reading and once for writing, and the heads that spell."""
    import numpy as np

    from responses_app.demo.growing import grown
    from responses_app.demo.o200k_files import special_names, tokenizer_json
    from responses_app.demo.rows import starting_rows
    from responses_app.demo.spelling import answering, noted, pieces_of

    tensors = _read(FOLDERS["demo-harmony"] / WEIGHTS)
    (work / "tokenizer.json").write_text(tokenizer_json(), encoding="utf-8")
    used = np.array([int(line) for line in (FOLDERS["demo-harmony"] / "rows.txt").read_text().split()])
    some = tensors.pop("model.embed_tokens.weight")
    spelt = spellings(special_names())
    rows = starting_rows(spelt, some.shape[1])
    rows[used] = some
    pieces, theta = pieces_of(spelt), json.loads((work / "config.json").read_text())["rope_theta"]
    written = {"model.embed_tokens.weight": noted(rows, spelt, pieces), "lm_head.weight": answering(rows, pieces)}
    return grown(tensors, theta) | written


def spellings(special: list[str]) -> list[bytes]:
    """What every token of gpt-oss looks like: the ground on which starting rows are made."""
    from responses_app.demo import o200k

    return o200k.pieces() + [s.encode() for s in special]


_EXPAND: dict[str, Callable[[Path], dict[str, Floats]]] = {
    "demo-chat": _expand_chat,
    "demo-harmony": _expand_harmony,
}
