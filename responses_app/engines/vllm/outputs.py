"""vLLM's outputs as chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.engine_interface import Chunk, Logprob
from responses_app.engines.vllm.params import FINISHES, LOWEST_LOGPROB


def chunk(output: Any, wanted: int | None, first: bool) -> Chunk:
    """One output of vLLM; `wanted` is the number of alternatives with log-probabilities, `first` whether it is the first."""
    (completion,) = output.outputs
    finish = completion.finish_reason
    return Chunk(
        tokens=tuple(completion.token_ids),
        logprobs=_logprobs(completion, wanted),
        finish=FINISHES[finish] if finish else None,
        cached=output.num_cached_tokens if first else None,
        prompt=len(output.prompt_token_ids or ()) or None if first else None,
    )


def _logprobs(completion: Any, wanted: int | None) -> Sequence[Logprob]:
    if wanted is None or not completion.logprobs:
        return ()
    return [_logprob(token, step, wanted) for token, step in zip(completion.token_ids, completion.logprobs, strict=True)]


def _logprob(token: int, step: Mapping[int, Any], wanted: int) -> Logprob:
    """vLLM puts the chosen token first, then the best by rank; the alternatives are the `wanted` best of them all."""
    values = {other: max(entry.logprob, LOWEST_LOGPROB) for other, entry in step.items()}
    best = sorted(values.items(), key=lambda pair: -pair[1])[:wanted]
    return Logprob(token, values.get(token, LOWEST_LOGPROB), best)
