"""Weights small enough to commit: whole numbers with one scale per row, opened again as bfloat16."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bits = npt.NDArray[np.uint16]
_SCALE = ".scale"
# Elements that are converted at a time, so that they stay in the cache of a processor.
CHUNK = 1 << 18


def pack(tensors: Mapping[str, Floats], levels: int) -> dict[str, npt.NDArray[np.generic]]:
    """Matrices become int8 in -levels..levels; fewer levels are fewer bytes once git has compressed them."""
    out: dict[str, npt.NDArray[np.generic]] = {}
    for name, value in tensors.items():
        if value.ndim < 2:
            out[name] = value.astype(np.float32)
            continue
        scale = np.maximum(np.abs(value).max(axis=-1, keepdims=True) / levels, 1e-12).astype(np.float32)
        out[name] = np.clip(np.rint(value / scale), -levels, levels).astype(np.int8)
        out[name + _SCALE] = scale
    return out


def unpack(packed: Mapping[str, npt.NDArray[np.generic]]) -> dict[str, Floats]:
    """Multiply the packed tensors by their scales."""
    names = [n for n in packed if not n.endswith(_SCALE)]
    return {
        n: packed[n].astype(np.float32) * (packed[n + _SCALE].astype(np.float32) if n + _SCALE in packed else np.float32(1))
        for n in names
    }


def bfloat16(value: Floats) -> Bits:
    """Rounded to nearest, ties to even; numpy has no such type, so the bits travel as uint16."""
    bits = np.array(value, dtype=np.float32, order="C").view(np.uint32)
    bits += np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (bits >> np.uint32(16)).astype(np.uint16)


def write_bfloat16(tensors: Mapping[str, Floats], path: Path) -> None:
    """A safetensors file: the length of the header, the header, the bytes."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, value in tensors.items():
        header[name] = {"dtype": "BF16", "shape": list(value.shape), "data_offsets": [place, place + 2 * value.size]}
        place += 2 * value.size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        _write_all(file, tensors)


def _write_all(file: BinaryIO, tensors: Mapping[str, Floats]) -> None:
    for value in tensors.values():
        flat = value.reshape(-1)
        for start in range(0, flat.size, CHUNK):
            file.write(bfloat16(flat[start : start + CHUNK]).tobytes())
