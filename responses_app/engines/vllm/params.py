"""How a request's sampling and constraint are said in vLLM's own words, in Python as over HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from responses_app.engine_interface import Constraint, Finish, Sampling

# A repetition stop only comes to those who ask for it, which nobody here does; `error` is not a way to finish.
FINISHES: Mapping[str, Finish] = {"stop": "stop", "length": "length", "abort": "abort", "repetition": "stop"}

# What OpenAI writes for minus infinity, which JSON has no word for.
LOWEST_LOGPROB = -9999.0


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """The fields of vLLM's SamplingParams that `sampling` sets, as plain values."""
    return {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "seed": sampling.seed,
        "logit_bias": dict(sampling.bias) or None,
        "logprobs": sampling.logprobs,
        "ignore_eos": sampling.ignore_eos,
        # vLLM stops at these whatever else it was told.
        "stop_token_ids": [] if sampling.ignore_eos else list(sampling.stop_token_ids),
        # The dialects turn ids into text themselves; doing it here too would be paid per token.
        "detokenize": False,
    }


def structured_fields(constraint: Constraint) -> dict[str, Any]:
    """The one field of vLLM's StructuredOutputsParams that `constraint` sets. Only a JSON schema may stay an object."""
    if constraint.kind == "json" or isinstance(constraint.value, str):
        return {constraint.kind: constraint.value}
    return {constraint.kind: json.dumps(constraint.value)}
