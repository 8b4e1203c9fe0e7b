"""LoRA adapters of an engine: keys of engine URLs, checks of folders, and the engine of an adapter."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from responses_app.engine_interface import Chunk, Constraint, Engine, GenerateRequest

# Prefix of the keys of an engine URL, as `lora.sql=/srv/sql`.
PREFIX: Final = "lora."
CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = ("adapter_model.safetensors", "adapter_model.bin", "adapter_model.pt")
# Ranks for which vLLM can be started.
RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)


def split_adapters(query: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the keys of an engine URL without the adapters, and the folders of the adapters by name."""
    adapters = {key.removeprefix(PREFIX): folder for key, folder in query.items() if key.startswith(PREFIX)}
    return {key: value for key, value in query.items() if not key.startswith(PREFIX)}, adapters


def adapter_problem(name: str, folder: str) -> str | None:
    """Return why a folder is no LoRA adapter, or None."""
    path = Path(folder)
    if not name or any(letter.isspace() for letter in name):
        return f"the name {name!r} of a LoRA adapter must be a word"
    if not folder or not path.is_dir():
        return f"there is no folder {folder or '(empty)'} of the LoRA adapter {name}"
    if not (path / CONFIG).is_file():
        return f"{folder} holds no {CONFIG}, so the folder has no LoRA adapter"
    if not any((path / file).is_file() for file in WEIGHTS):
        return f"{folder} holds no weights of a LoRA adapter ({' or '.join(WEIGHTS)})"
    try:
        config = json.loads((path / CONFIG).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return f"{folder}/{CONFIG} cannot be read: {error}"
    kind = config.get("peft_type", "LORA") if isinstance(config, dict) else "LORA"
    if kind != "LORA" or (isinstance(config, dict) and config.get("use_dora")):
        return f"{folder} has an adapter of the kind {'DoRA' if kind == 'LORA' else kind}; vLLM takes LoRA adapters alone"
    rank = config.get("r") if isinstance(config, dict) else None
    if not isinstance(rank, int) or not 0 < rank <= RANKS[-1]:
        return f"{folder}/{CONFIG} has the rank r={rank!r}; vLLM takes ranks from 1 to {RANKS[-1]}"
    return None


def adapter_options(adapters: Mapping[str, str], options: Mapping[str, str]) -> dict[str, str]:
    """Return vLLM's options for the adapters, except those that `options` has. Raises ValueError for a folder without an adapter."""
    if not adapters:
        return {}
    for name, folder in adapters.items():
        if problem := adapter_problem(name, folder):
            raise ValueError(problem)
    rank = max(int(json.loads((Path(folder) / CONFIG).read_text(encoding="utf-8"))["r"]) for folder in adapters.values())
    if (chosen := options.get("max_lora_rank", "")).isdecimal() and int(chosen) < rank:
        raise ValueError(f"max_lora_rank={chosen} is below the rank {rank} of an adapter: leave it out, or raise it")
    needed = {
        "enable_lora": "1",
        "max_lora_rank": str(next(allowed for allowed in RANKS if allowed >= rank)),
        # One slot stays empty: on a CPU, vLLM 0.32 gives requests without an adapter the last slot when they share a batch
        # with requests of an adapter.
        "max_loras": str(len(adapters) + 1),
        "max_cpu_loras": str(len(adapters) + 1),
    }
    return {name: value for name, value in needed.items() if name not in options}


class AdapterEngine:
    """Engine of an adapter: the requests of `engine`, with the adapter. The base model starts and closes the engine."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine, self._name = engine, name
        self.counts_cheaply, self.has_xgrammar = engine.counts_cheaply, engine.has_xgrammar

    @property
    def max_model_len(self) -> int:
        """Return the context of the base model."""
        return self._engine.max_model_len

    @property
    def supports_images(self) -> bool:
        """Return whether the base model takes images."""
        return self._engine.supports_images

    @property
    def refusal_s(self) -> float:
        """Return the pause of the engine of the base model."""
        return self._engine.refusal_s

    async def start(self) -> None:
        """Do nothing: the base model starts the engine."""

    async def close(self) -> None:
        """Do nothing: the base model closes the engine."""

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate with the adapter."""
        return self._engine.generate(replace(request, lora=self._name))

    async def prefill(self, request: GenerateRequest) -> None:
        """Process the prompt with the adapter: adapters share no prefixes."""
        await self._engine.prefill(replace(request, lora=self._name))

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens, as the base model does."""
        return await self._engine.count_tokens(prompt, images)

    def check_constraint(self, constraint: Constraint) -> None:
        """Check a constraint, as the base model does."""
        self._engine.check_constraint(constraint)

    async def is_healthy(self) -> bool:
        """Return True if the engine of the base model runs."""
        return await self._engine.is_healthy()
