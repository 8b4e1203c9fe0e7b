"""Conversion of vLLM's outputs to chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from responses_app.engine_interface import Chunk, EngineUnavailable, GenerateRequest, Logprob, RequestRejected
from responses_app.engines.vllm.params import FINISH_REASONS, LOWEST_LOGPROB


async def processed_chunks(
    llm: Any, request: GenerateRequest, prompt: Any, params: Any, adapter: Any
) -> AsyncGenerator[Chunk, None]:
    """Generate chunks from the outputs of vLLM's output processor. Raises EngineUnavailable, RequestRejected, and the errors of vLLM."""
    outputs = llm.generate(
        prompt,
        params,
        request.id,
        lora_request=adapter,
        priority=request.priority,
        reasoning_ended=True,  # Apply the constraint from the first token, whatever parser vLLM is configured with.
    )
    fresh = True
    async with aclosing(outputs):
        async for output in outputs:
            _check_finish(output, request, fresh)
            yield chunk(output, request.sampling.logprobs, fresh)
            fresh = False


def _check_finish(output: Any, request: GenerateRequest, fresh: bool) -> None:
    """Raise for the finish reason `error`: vLLM lost the request's state, or the constraint did not compile."""
    if output.outputs[0].finish_reason == "error":
        if fresh and request.constraint:
            raise RequestRejected(f"the {request.constraint.kind} constraint cannot be compiled")
        raise EngineUnavailable(f"vLLM gave up on {request.id}")


def chunk(output: Any, logprob_count: int | None, first: bool) -> Chunk:
    """Convert an output of vLLM. `logprob_count` is the number of alternatives per token; `first` marks the first output."""
    (completion,) = output.outputs
    finish = completion.finish_reason
    if finish is None and logprob_count is None and not first:
        # Nearly every output.
        return Chunk(tuple(completion.token_ids))
    return Chunk(
        tokens=tuple(completion.token_ids),
        logprobs=_logprobs(completion, logprob_count),
        finish=FINISH_REASONS[finish] if finish else None,
        cached=output.num_cached_tokens if first else None,
        prompt=len(output.prompt_token_ids or ()) or None if first else None,
    )


def _logprobs(completion: Any, logprob_count: int | None) -> Sequence[Logprob]:
    if logprob_count is None or not completion.logprobs:
        return ()
    return [_logprob(token, step, logprob_count) for token, step in zip(completion.token_ids, completion.logprobs, strict=True)]


def _logprob(token: int, step: Mapping[int, Any], logprob_count: int) -> Logprob:
    """Convert the log-probabilities of a position: the best `logprob_count` of the sampled token and vLLM's ranked alternatives."""
    values = {alternative: max(entry.logprob, LOWEST_LOGPROB) for alternative, entry in step.items()}
    best = sorted(values.items(), key=lambda pair: -pair[1])[:logprob_count]
    return Logprob(token, values.get(token, LOWEST_LOGPROB), best)
