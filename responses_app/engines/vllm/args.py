"""vLLM engine arguments: converts a model and the options of an engine URL."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from responses_app.engines.vllm.inductor import NO_COMPILATION, skip_inductor

QUIET_ENVIRON = {
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
    # Suppress the warning about shared memory of killed workers at exit; it is freed all the same.
    "PYTHONWARNINGS": "ignore:resource_tracker:UserWarning",
}

# Forked children would lack the mark of the orphan guard, and could inherit held locks.
SPAWN = {"VLLM_WORKER_MULTIPROC_METHOD": "spawn"}

CPU_KV_CACHE_GIB = "1"
# Models declare up to a million tokens; allocating for them on a CPU would not end. Small models get the higher limit.
CPU_MAX_MODEL_LEN, CPU_MAX_SMALL_MODEL_LEN = 8192, 32768
# Bytes of a key or value in the cache, and the share of the cache that one request may take.
CACHE_ELEMENT_BYTES, MAX_CACHE_SHARE = 2, 0.5

TRUE_VALUES, FALSE_VALUES = ("", "1", "true", "yes", "on"), ("0", "false", "no", "off")


class InvalidEngineOption(ValueError):
    """An option unknown to vLLM, or a value rejected by vLLM."""


def load(model: str, options: Mapping[str, str]) -> Any:
    """Start an AsyncLLM and the child processes of the core. Blocks for 15 s or more. Raises InvalidEngineOption, or errors of vLLM."""
    set_env(model)
    from vllm.v1.engine.async_llm import AsyncLLM

    return AsyncLLM.from_engine_args(engine_args(model, options))


def set_env(model: str) -> None:
    """Set the environment variables read by vLLM, except variables already set. Call before importing vLLM, which it makes cheaper."""
    skip_inductor()
    for name, value in (QUIET_ENVIRON | SPAWN | _offline(model)).items():
        os.environ.setdefault(name, value)


def starts_concurrently(options: Mapping[str, str]) -> bool:
    """Return True if more engines may start while an engine with `options` waits for the core.

    On a GPU vLLM measures free memory and would count the use of the other engine as its own. With data parallelism more cores
    follow.
    """
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu()) and not any(name.startswith("data_parallel") for name in options)


def engine_args(model: str, options: Mapping[str, str]) -> Any:
    """Build vLLM's AsyncEngineArgs: our defaults, then the options, converted as by `vllm serve`."""
    from vllm.engine.arg_utils import AsyncEngineArgs

    return AsyncEngineArgs(**engine_fields(model, options))


def engine_fields(model: str, options: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of AsyncEngineArgs to set. Raises InvalidEngineOption."""
    parsed = _parse(options)
    return {"model": model} | _defaults(model, parsed) | parsed


def _defaults(model: str, parsed: Mapping[str, Any]) -> dict[str, Any]:
    from vllm.platforms import current_platform

    defaults: dict[str, Any] = {
        # Requests have priorities, which vLLM rejects under its default policy, first come first served.
        "scheduling_policy": "priority",
        # With vLLM's default (`auto`) the first constraint rejected by xgrammar switches the backend for all later requests.
        "structured_outputs_config": {"backend": "xgrammar"},
        "disable_log_stats": True,
    }
    if current_platform.is_cpu():
        os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", CPU_KV_CACHE_GIB)
        defaults |= {"enforce_eager": True} | ({} if "max_model_len" in parsed else _limit_context(model))
        if parsed.get("enforce_eager", True):
            os.environ.setdefault(*NO_COMPILATION)
        from responses_app.engines.vllm.executor import cpu_executor

        defaults["distributed_executor_backend"] = cpu_executor(parsed)
    return defaults


def _limit_context(model: str) -> dict[str, int]:
    """Limit the context length of models that declare more than a CPU can hold."""
    from vllm.transformers_utils.config import get_config

    config = get_config(model, trust_remote_code=False).get_text_config()
    named = getattr(config, "max_position_embeddings", None)
    limit = cpu_context_limit(config, float(os.environ["VLLM_CPU_KVCACHE_SPACE"]))
    return {"max_model_len": limit} if isinstance(named, int) and named > limit else {}


def cpu_context_limit(config: Any, cache_gib: float) -> int:
    """Return the highest context length on a CPU, in tokens, for a text `config` and a cache of `cache_gib` GiB.

    Small models get CPU_MAX_SMALL_MODEL_LEN: one request of that length takes at most half of the cache.
    """
    heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None)
    sizes: tuple[Any, ...] = (getattr(config, "num_hidden_layers", None), heads, getattr(config, "head_dim", None))
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        return CPU_MAX_MODEL_LEN
    token_bytes = 2 * int(math.prod(sizes)) * CACHE_ELEMENT_BYTES
    fits = CPU_MAX_SMALL_MODEL_LEN * token_bytes <= cache_gib * 2**30 * MAX_CACHE_SHARE
    return CPU_MAX_SMALL_MODEL_LEN if fits else CPU_MAX_MODEL_LEN


def _offline(model: str) -> dict[str, str]:
    """Disable the model hub for a model on disk: without network, hub requests cost minutes.

    The variable holds for the whole process. With other models from the hub set HF_HUB_OFFLINE before, as `bin/serve` does.
    """
    return {"HF_HUB_OFFLINE": "1"} if Path(model).exists() else {}


class RaisingParser(argparse.ArgumentParser):
    """Parser that raises InvalidEngineOption where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidEngineOption (overrides argparse)."""
        raise InvalidEngineOption(message)


def _parse(options: Mapping[str, str]) -> dict[str, Any]:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = AsyncEngineArgs.add_cli_args(type("_Strict", (RaisingParser, FlexibleArgumentParser), {})(exit_on_error=False))
    known = {field.name for field in fields(AsyncEngineArgs)} - {"model"}
    actions = {action.dest: action for action in parser._actions if action.dest in known}
    return {name: _convert(parser, actions, name, value) for name, value in options.items()}


def _convert(parser: Any, actions: Mapping[str, argparse.Action], name: str, value: str) -> Any:
    if name not in actions:
        raise InvalidEngineOption(_unknown(name, set(actions)))
    action = actions[name]
    if action.nargs == 0:  # Some flags have a `--no-` twin, some only switch on. In a URL both values can be set.
        if value.lower() not in TRUE_VALUES + FALSE_VALUES:
            raise InvalidEngineOption(f"{name} is either 1 or 0, got {value!r}")
        return value.lower() in TRUE_VALUES
    try:
        return getattr(parser.parse_args([f"{max(action.option_strings, key=len)}={value}"]), name)
    except argparse.ArgumentError as error:
        raise InvalidEngineOption(str(error)) from error


def _unknown(name: str, known: set[str]) -> str:
    close = get_close_matches(name, known, n=3) or sorted(known)
    return (
        f"unknown option {name!r} in a vllm: engine URL; allowed are the fields of vLLM's AsyncEngineArgs: {', '.join(close)}"
    )
