"""Memory of a model, computed from its config.json: weights and KV cache, against what the machine has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from responses_app.server.model_files.sizes import GIB, memory_text

# Memory of vLLM itself beside weights and cache: libraries and activations.
ENGINE_BYTES = {"CPU": 3 * GIB // 2, "GPU": GIB}
ELEMENT_BYTES = {"float32": 4, "float": 4}
DEFAULT_ELEMENT_BYTES = 2
# A context is offered in steps, and from a minimum on.
CONTEXT_STEP, MIN_CONTEXT = 256, 512
# vLLM's default of gpu_memory_utilization.
GPU_SHARE = 0.9
SMI = ("nvidia-smi", "--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits")
SMI_LIMIT_S = 30.0
DEFAULT_CACHE_GIB = 1


@dataclass(frozen=True, slots=True)
class Machine:
    """Memory for models: of the CPU or of one or several GPUs, in bytes. `free` is what a model may take."""

    kind: str
    free: int
    cards: int = 1


@dataclass(frozen=True, slots=True)
class Attention:
    """KV cache per token: `full` bytes for each token of the context, `windowed` for each token of at most `window`."""

    full: int
    windowed: int = 0
    window: int = 0

    def size(self, context: int) -> int:
        """Return the bytes of the cache for a request of `context` tokens."""
        return self.full * context + self.windowed * min(context, self.window)


@dataclass(frozen=True, slots=True)
class Need:
    """Memory that a model needs. `declared` is the context of the model, `context` the context that is served."""

    weights: int
    attention: Attention
    declared: int
    context: int
    # Bytes of the cache where the operator has set it; None for as much as the context needs.
    cache_bytes: int | None = None
    # Bytes of LoRA adapters.
    adapters: int = 0

    def cache(self, context: int, kind: str) -> int:
        """Return the bytes of the KV cache; on a CPU whole GiB, as vLLM's variable counts."""
        if self.cache_bytes is not None:
            return self.cache_bytes
        needed = self.attention.size(context)
        return max(ceil(needed / GIB), DEFAULT_CACHE_GIB) * GIB if kind == "CPU" else needed

    def total(self, context: int, kind: str) -> int:
        """Return the bytes of weights, adapters, cache and engine."""
        return self.weights + self.adapters + self.cache(context, kind) + ENGINE_BYTES[kind]

    def fits(self, context: int, machine: Machine) -> bool:
        """Return True if the model fits into the memory with this context."""
        in_cache = self.cache_bytes is None or self.attention.size(context) <= self.cache_bytes
        return in_cache and self.total(context, machine.kind) <= machine.free

    def largest_context(self, machine: Machine) -> int:
        """Return the largest context that fits, 0 if none does."""
        low, high = 0, self.context // CONTEXT_STEP
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self.fits(middle * CONTEXT_STEP, machine) else (low, middle - 1)
        return low * CONTEXT_STEP if low * CONTEXT_STEP >= MIN_CONTEXT else 0

    def sum_text(self, machine: Machine) -> str:
        """Return the sum as text."""
        adapters = f" + adapters {memory_text(self.adapters)}" if self.adapters else ""
        parts = (
            f"weights {memory_text(self.weights)}{adapters} + KV cache {memory_text(self.cache(self.context, machine.kind))}"
        )
        total = memory_text(self.total(self.context, machine.kind))
        return f"{parts} + engine {memory_text(ENGINE_BYTES[machine.kind])} = {total}"


def need(config: Mapping[str, Any], file_bytes: int, options: Mapping[str, str], kind: str) -> Need:
    """Compute the memory of a model from config.json, the size of the files with weights, and the options of the engine URL."""
    text = text_config(config)
    element, own_type = element_bytes(options), str(text.get("dtype") or text.get("torch_dtype") or "")
    weight_bytes = ELEMENT_BYTES.get(own_type, DEFAULT_ELEMENT_BYTES)
    # vLLM loads float32 as bfloat16; weights of less than 16 bits stay as they are.
    weights = file_bytes if "quantization_config" in config else file_bytes * element // weight_bytes
    attention = _attention(text, element)
    declared = _integer(text, "max_position_embeddings", "n_positions", "max_sequence_length", "seq_length") or 2048
    cache_bytes = _set_cache(options, kind)
    context = _asked_context(options) or (min(declared, _cpu_limit(text, cache_bytes)) if kind == "CPU" else declared)
    cards = max(int(options.get("tensor_parallel_size", "1") or 1), 1)
    return Need(weights // cards, Attention(attention.full // cards, attention.windowed // cards, attention.window), declared,
                context, cache_bytes)  # fmt: skip


def element_bytes(options: Mapping[str, str]) -> int:
    """Return the bytes of a number in weights and cache, by the options of the engine URL."""
    return ELEMENT_BYTES.get(options.get("dtype", "auto"), DEFAULT_ELEMENT_BYTES)


def machine(options: Mapping[str, str], has_gpu: bool) -> Machine:
    """Measure the memory of this machine: one card of a GPU, or the memory of the CPU."""
    if has_gpu and (cards := _cards()):
        share = float(options.get("gpu_memory_utilization") or GPU_SHARE)
        return Machine("GPU", min(min(free, int(total * share)) for total, free in cards), len(cards))
    import psutil

    return Machine("CPU", min(int(psutil.virtual_memory().available), _cgroup_free()))


def text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of config.json about the text model."""
    for key in ("text_config", "llm_config", "language_config"):
        if isinstance(config.get(key), dict):
            return {**config, **config[key]}
    return config


def _attention(text: Mapping[str, Any], element: int) -> Attention:
    layers = _integer(text, "num_hidden_layers", "n_layer", "num_layers") or 0
    heads = _integer(text, "num_attention_heads", "n_head") or 0
    if _integer(text, "kv_lora_rank"):  # Multi-head latent attention.
        per_layer = element * ((_integer(text, "kv_lora_rank") or 0) + (_integer(text, "qk_rope_head_dim") or 0))
    else:
        hidden = _integer(text, "hidden_size", "n_embd") or 0
        size = _integer(text, "head_dim") or (hidden // heads if heads else 0)
        per_layer = 2 * element * (_integer(text, "num_key_value_heads") or heads) * size
    types = text.get("layer_types")
    kinds = [str(kind) for kind in types] if isinstance(types, list) else ["full_attention"] * layers
    window = _integer(text, "sliding_window") or 0
    windowed = kinds.count("sliding_attention") if window else 0
    full = kinds.count("full_attention") + (0 if window else kinds.count("sliding_attention"))
    return Attention(full * per_layer, windowed * per_layer, window)


def _cpu_limit(text: Mapping[str, Any], cache_bytes: int | None) -> int:
    from responses_app.engines.vllm.args import cpu_context_limit

    names = ("num_key_value_heads", "num_attention_heads", "num_hidden_layers", "head_dim")
    return cpu_context_limit(SimpleNamespace(**{name: text.get(name) for name in names}), (cache_bytes or GIB) / GIB)


def _set_cache(options: Mapping[str, str], kind: str) -> int | None:
    """Return the bytes of the cache that the operator has set."""
    if kind == "CPU" and (gib := os.environ.get("VLLM_CPU_KVCACHE_SPACE")):
        return int(gib) * GIB if gib.isdigit() and int(gib) else None
    cache_bytes = options.get("kv_cache_memory_bytes", "")
    return int(cache_bytes) if cache_bytes.isdigit() else None


def _asked_context(options: Mapping[str, str]) -> int | None:
    text = options.get("max_model_len", "")
    factor = {"k": 1000, "K": 1024}.get(text[-1:], 1)
    digits = text.rstrip("kK")
    return int(digits) * factor if digits.isdigit() else None


def _integer(values: Mapping[str, Any], *names: str) -> int | None:
    return next((values[name] for name in names if isinstance(values.get(name), int) and values[name] > 0), None)


def _cards() -> list[tuple[int, int]]:
    """Return the total and the free memory of each GPU, in bytes."""
    try:
        done = subprocess.run(SMI, check=True, capture_output=True, text=True, timeout=SMI_LIMIT_S)
        lines = [line.split(",") for line in done.stdout.splitlines() if line.strip()]
        return [(int(total) * 2**20, int(free) * 2**20) for total, free in lines]
    except (OSError, subprocess.SubprocessError, ValueError):
        return []


def _cgroup_free(root: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the memory that the limit of a container leaves."""
    try:
        limit = (root / "memory.max").read_text().strip()
        used = int((root / "memory.current").read_text())
        cached = dict(line.split() for line in (root / "memory.stat").read_text().splitlines()).get("inactive_file", "0")
    except (OSError, ValueError):
        return 2**63
    return int(limit) - used + int(cached) if limit.isdigit() else 2**63
