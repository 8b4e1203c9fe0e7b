"""Conversion of vLLM's outputs to chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.engine_interface import Chunk, Logprob
from responses_app.engines.vllm.params import FINISH_REASONS, LOWEST_LOGPROB


def chunk(output: Any, wanted: int | None, first: bool) -> Chunk:
    """Convert an output of vLLM. `wanted` is the number of alternatives per token; `first` marks the first output."""
    (completion,) = output.outputs
    finish = completion.finish_reason
    if finish is None and wanted is None and not first:
        # Nearly every output.
        return Chunk(tuple(completion.token_ids))
    return Chunk(
        tokens=tuple(completion.token_ids),
        logprobs=_logprobs(completion, wanted),
        finish=FINISH_REASONS[finish] if finish else None,
        cached=output.num_cached_tokens if first else None,
        prompt=len(output.prompt_token_ids or ()) or None if first else None,
    )


def _logprobs(completion: Any, wanted: int | None) -> Sequence[Logprob]:
    if wanted is None or not completion.logprobs:
        return ()
    return [_logprob(token, step, wanted) for token, step in zip(completion.token_ids, completion.logprobs, strict=True)]


def _logprob(token: int, step: Mapping[int, Any], wanted: int) -> Logprob:
    """Convert the log-probabilities of a position: the best `wanted` of the sampled token and vLLM's ranked alternatives."""
    values = {alternative: max(entry.logprob, LOWEST_LOGPROB) for alternative, entry in step.items()}
    best = sorted(values.items(), key=lambda pair: -pair[1])[:wanted]
    return Logprob(token, values.get(token, LOWEST_LOGPROB), best)
