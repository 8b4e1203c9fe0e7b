"""Engine interface: the requests, chunks and errors exchanged between the server and every engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "abort"]


class EngineError(Exception):
    """Base class of the errors of an engine."""


class EngineUnavailable(EngineError):
    """The engine is unreachable, or ended during a generation."""


class EngineUnreachable(EngineUnavailable):
    """The engine cannot be reached now; a later attempt may succeed."""


class EngineMoved(EngineUnavailable):
    """The engine ended during a generation, and another engine can continue at once."""


class EngineLacksModel(EngineUnavailable):
    """The engine runs and does not serve the model any more, as after the removal of a LoRA adapter."""


class EngineOverloaded(EngineUnavailable):
    """The engine runs and refuses the request, because too many wait. `retry_after_s` is the pause that the engine names."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class RequestRejected(EngineError):
    """The engine rejects the request: an invalid constraint, or a prompt beyond the context length."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters.

    `max_tokens` counts generated tokens. `logprobs` is the number of alternatives per token; None means no log-probabilities.
    `top_k` is the number of the most likely tokens to choose from, 0 for all. `min_p` is the least probability of a token, as a
    share of that of the most likely token. `repetition_penalty` divides the logits of tokens of the prompt and of the output.
    `bias` is added to the logits of tokens.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    ignore_eos: bool = False
    stop_token_ids: Sequence[int] = ()
    bias: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Constraint:
    """Structured-output constraint: the generated text must match `value` from the first token on.

    `value` is a JSON schema (dict), a regular expression, an EBNF grammar, or the JSON of an xgrammar structural tag.
    """

    kind: Literal["json", "regex", "grammar", "structural_tag"]
    value: str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """Request for a generation. `id` is unique per engine while the server runs.

    `images` are encoded images (PNG, JPEG, WebP), one per placeholder of the prompt, in prompt order. A smaller `priority` is
    scheduled first.

    `length` is the number of prompt tokens including images, None if unknown. The last `prior_tokens` tokens of the prompt are
    output of an earlier request that this request continues; `sampling.max_tokens` counts the remaining tokens only. `owner` is
    the project: engines schedule projects in turn. `session` is equal for all turns of a chain: engines with the same session share
    a prefix. With `may_join` a busy process may take the tokens of a short time together, as one chunk.
    `lora` is the name of a LoRA adapter of the engine, empty for the base model. `request_id` is the id of the HTTP request for the
    engine's log, `traceparent` and `tracestate` the trace for its spans; all may be empty. A pool appends host and port of each engine
    that it uses to `used_engines`.
    """

    id: str
    prompt: Sequence[int]
    sampling: Sampling
    constraint: Constraint | None = None
    priority: int = 0
    cache_salt: str | None = None
    images: Sequence[bytes] = ()
    length: int | None = None
    prior_tokens: int = 0
    owner: str = ""
    session: str = ""
    may_join: bool = True
    lora: str = ""
    request_id: str = ""
    traceparent: str = ""
    tracestate: str = ""
    used_engines: list[str] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Logprob:
    """Log-probability of a generated token, with alternatives as (token id, logprob), best first."""

    token: int
    logprob: float
    top: Sequence[tuple[int, float]] = ()


@dataclass(slots=True)
class Chunk:
    """New tokens since the last chunk, in order. `finish` is set on the last chunk only; `tokens` may be empty there.

    Do not change a chunk. The class is not frozen, because a frozen dataclass takes four times as long to create, for every token.

    A stop token that ended the generation is the last of `tokens`. `cached` is the number of prompt tokens found in the
    engine's prefix cache. `prompt` is the number of prompt tokens including images, once known.
    """

    tokens: Sequence[int] = ()
    logprobs: Sequence[Logprob] = field(default=())
    finish: Finish | None = None
    cached: int | None = None
    prompt: int | None = None

    def without_last(self, count: int) -> Chunk:
        """Return a copy without the last `count` tokens."""
        read = len(self.tokens) - count
        return replace(self, tokens=self.tokens[:read], logprobs=self.logprobs[:read])


async def prefill_by_generating(engine: Engine, request: GenerateRequest) -> None:
    """Prefill the prompt by generating and discarding a single token."""
    sampling = replace(request.sampling, max_tokens=1, logprobs=None)
    async with aclosing(engine.generate(replace(request, constraint=None, sampling=sampling))) as chunks:
        async for _ in chunks:
            pass


class Engine(Protocol):
    """Inference engine: token ids in, token ids out."""

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together; known after `start`."""
        ...

    async def start(self) -> None:
        """Load the model, or connect to the server. Raises EngineUnavailable."""
        ...

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks up to the chunk with `finish`.

        Closing the generator early (`aclose`, cancellation) aborts the request in the engine. Raises RequestRejected before the
        first chunk, EngineUnavailable at any time.
        """
        ...

    async def prefill(self, request: GenerateRequest) -> None:
        """Process the prompt into the prefix cache, for later requests with the same prefix. Raises as `generate` does."""
        ...

    # True if `count_tokens` needs no generation, so that it can be called for every prompt with images.
    counts_cheaply: bool

    @property
    def supports_images(self) -> bool:
        """True if the model accepts images, as far as the engine knows; known after `start`."""
        ...

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens, images included. Raises RequestRejected, EngineUnavailable."""
        ...

    # True if the engine compiles constraints with the xgrammar installed here, so that rejections can be predicted.
    has_xgrammar: bool

    def check_constraint(self, constraint: Constraint) -> None:
        """Reject a constraint known to fail, without compiling, in linear time. Raises RequestRejected."""
        ...

    async def is_healthy(self) -> bool:
        """Return True if the engine runs. An engine that runs may still refuse requests, see `refusal_s`."""
        ...

    @property
    def refusal_s(self) -> float:
        """Seconds for which the engine refuses requests, because too many wait; 0 if a request sent now would be processed."""
        ...

    async def close(self) -> None:
        """Abort running requests and release the resources taken by `start`."""
        ...
