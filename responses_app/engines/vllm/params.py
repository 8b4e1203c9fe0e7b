"""Mapping of sampling parameters and constraints to vLLM's fields, in Python and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from responses_app.engine_interface import Constraint, Finish, Sampling

# vLLM reports `repetition` only for a parameter that is never set here; `error` is an exception.
FINISH_REASONS: Mapping[str, Finish] = {"stop": "stop", "length": "length", "abort": "abort", "repetition": "stop"}

# OpenAI writes minus infinity, which JSON lacks, as this value.
LOWEST_LOGPROB = -9999.0


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """Map `sampling` to the fields of vLLM's SamplingParams, as JSON values."""
    return {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": sampling.seed,
        "logit_bias": dict(sampling.bias) or None,
        "logprobs": sampling.logprobs,
        "ignore_eos": sampling.ignore_eos,
        # vLLM stops at `stop_token_ids` even with `ignore_eos`.
        "stop_token_ids": [] if sampling.ignore_eos else list(sampling.stop_token_ids),
        # The dialects detokenize; vLLM's detokenizer would cost time per token.
        "detokenize": False,
    }


def structured_fields(constraint: Constraint) -> dict[str, Any]:
    """Map `constraint` to a field of vLLM's StructuredOutputsParams. Only a JSON schema may stay an object."""
    if constraint.kind == "json" or isinstance(constraint.value, str):
        return {constraint.kind: constraint.value}
    return {constraint.kind: json.dumps(constraint.value)}
