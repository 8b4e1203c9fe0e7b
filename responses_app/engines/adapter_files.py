"""LoRA adapters of a model before the start: names of modules that the model does not have, and the memory of the adapters."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from responses_app.engines.adapters import CONFIG, adapter_options, split_adapters

WEIGHTS = "adapter_model.safetensors"
# Names of modules in an error message.
MAX_NAMES = 3
# Bytes of the header of a safetensors file, at most.
MAX_HEADER = 100 * 2**20
# Prefix of PEFT before the names of the model, and its wrapper of a layer with several adapters.
_PREFIX, _WRAPPER = "base_model.model.", ".base_layer"
_LORA = re.compile(r"\.lora_(?:A|B|embedding_A|embedding_B)(?:\.|$)")
# A layer of the model and the names below, as `layers.0.self_attn.q_proj`.
_IN_LAYER = re.compile(r"(?:^|\.)([a-z_]+\.\d+(?:\..*)?)$")
_EXPERTS = re.compile(r"\.experts\..*")


def modules_problem(folder: Path, options: Mapping[str, str]) -> str | None:
    """Return which adapter has weights for modules that the model in `folder` lacks, or None.

    vLLM ignores such weights. Adapters and models without safetensors are not checked.
    """
    adapters, known, file = split_adapters(options)[1], _known_modules(folder), folder / "config.json"
    if not adapters or not known or not file.is_file():
        return None
    config = json.loads(file.read_text(encoding="utf-8"))
    is_nested = any(isinstance(value, dict) and "hidden_size" in value for value in config.values())
    # The parts of a multimodal model have other prefixes in its files than in the model that the adapter was trained on.
    by_layer = is_nested or not any(name.startswith("model.") for name in known)
    names = {_in_layer(name) for name in known} if by_layer else known
    for adapter, place in adapters.items():
        modules = _adapted_modules(_tensor_shapes(Path(place) / WEIGHTS))
        if missing := sorted(name for name in modules if (_in_layer(name) if by_layer else name) not in names):
            more = f" and {len(missing) - MAX_NAMES} more" if len(missing) > MAX_NAMES else ""
            return (
                f"the LoRA adapter {adapter} in {place} has weights for modules that the model does not have: "
                f"{', '.join(missing[:MAX_NAMES])}{more}; it belongs to another model"
            )
    return None


def adapters_size(folder: Path, options: Mapping[str, str], element: int, kind: str) -> int:
    """Return the bytes that vLLM takes for adapters: a slot for each, and on a CPU the weights too. Raises ValueError.

    `element` are the bytes of a number. A slot has the largest rank for all layers of the model, whatever layers an adapter has.
    """
    engine_options, adapters = split_adapters(options)
    if not adapters:
        return 0
    chosen = {**adapter_options(adapters, engine_options), **engine_options}
    rank, slots = int(chosen["max_lora_rank"]), int(chosen["max_loras"])
    sizes = {name: sum(file.stat().st_size for file in Path(place).glob("adapter_model.*")) for name, place in adapters.items()}
    slot = element * rank * sum(sum(shape) for name, shape in _layer_shapes(folder))
    if not slot:
        # The weights of the model are not there yet.
        slot = max(size * rank // _rank(adapters[name]) for name, size in sizes.items())
    return slots * slot + (sum(sizes.values()) if kind == "CPU" else 0)


def _tensor_shapes(file: Path) -> dict[str, list[int]]:
    """Return the shapes of the tensors of a safetensors file by name; empty for a missing or broken file."""
    try:
        with file.open("rb") as opened:
            length = opened.read(8)
            size = struct.unpack("<Q", length)[0] if len(length) == 8 else MAX_HEADER + 1
            tensors = json.loads(opened.read(size)) if size <= MAX_HEADER else {}
        return {name: list(tensor["shape"]) for name, tensor in tensors.items() if name != "__metadata__"}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _rank(folder: str) -> int:
    return int(json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))["r"])


def _layer_shapes(folder: Path) -> Iterable[tuple[str, list[int]]]:
    """Yield the names and shapes of the matrices of all layers."""
    for file in sorted(folder.glob("*.safetensors")):
        for name, shape in _tensor_shapes(file).items():
            if len(shape) == 2 and name.endswith(".weight") and _IN_LAYER.search(name):
                yield name, shape


def _known_modules(folder: Path) -> set[str]:
    """Return the names of the modules of a model, with those that contain others."""
    known: set[str] = set()
    for file in folder.glob("*.safetensors"):
        for name in _tensor_shapes(file):
            while "." in name and (name := name.rpartition(".")[0]) not in known:
                known.add(name)
    return known


def _adapted_modules(tensors: Mapping[str, Any]) -> set[str]:
    """Return the modules of an adapter. Experts count as one module, as checkpoints store these in several forms."""
    names = {_LORA.split(name)[0].removeprefix(_PREFIX) for name in tensors if _LORA.search(name)}
    modules = {_EXPERTS.sub(".experts", name.replace(_WRAPPER, "")) for name in names}
    # A checkpoint with tied embeddings has no weights of the last layer.
    return {name for name in modules if not name.endswith("lm_head")}


def _in_layer(name: str) -> str:
    """Return the name of a module from its layer on, or its last word."""
    match = _IN_LAYER.search(name)
    return match[1] if match else name.rpartition(".")[2]
