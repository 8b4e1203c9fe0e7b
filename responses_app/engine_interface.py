"""The few dataclasses that cross the border between the server and any engine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

Finish = Literal["stop", "length", "abort"]


class EngineError(Exception):
    """The engine could not do what was asked."""


class EngineUnavailable(EngineError):
    """The engine is not reachable, or died while it generated."""


class RequestRejected(EngineError):
    """The engine refused this request as such: a constraint it cannot compile, a prompt that does not fit."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose tokens.

    `max_tokens` counts generated tokens; `logprobs` is the number of alternatives wanted, None for none; `bias` is added to the
    logits of tokens.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = None
    logprobs: int | None = None
    ignore_eos: bool = False
    stop_token_ids: Sequence[int] = ()
    bias: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the generated text must match, from the first token on.

    `value` is a JSON schema (dict), a regex, a grammar, or the JSON of a structural tag.
    """

    kind: Literal["json", "regex", "grammar", "structural_tag"]
    value: str | dict[str, Any]


@dataclass(frozen=True, slots=True)
class GenerateRequest:
    """One generation. `id` is unique per engine for the life of the server.

    `images` are encoded pictures (PNG, JPEG, WebP), one per placeholder of the prompt, in its order.
    `priority`: smaller is served sooner. `length` is how many tokens the prompt has with its images, None if that was not asked.
    The last `heard` tokens of the prompt are an answer that another request has begun and this one goes on with; `sampling`
    counts what is still to come. `owner` is the project, for engines that serve projects in turn.
    """

    id: str
    prompt: Sequence[int]
    sampling: Sampling
    constraint: Constraint | None = None
    priority: int = 0
    cache_salt: str | None = None
    images: Sequence[bytes] = ()
    length: int | None = None
    heard: int = 0
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Logprob:
    """Log-probability of one generated token, with alternatives as (token id, logprob), best first."""

    token: int
    logprob: float
    top: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """New tokens since the last chunk, in order. `finish` is set on the last chunk only, whose `tokens` may be empty.

    The stop token that ended the generation, if any, is the last of `tokens`. `cached` is the number of prompt tokens
    that the engine took from its prefix cache, `prompt` how many the prompt has with its images, once known.
    """

    tokens: Sequence[int] = ()
    logprobs: Sequence[Logprob] = field(default=())
    finish: Finish | None = None
    cached: int | None = None
    prompt: int | None = None


async def read(engine: Engine, request: GenerateRequest) -> None:
    """`Engine.warm` of an engine that reads no prompt without saying one token, which is thrown away."""
    sampling = replace(request.sampling, max_tokens=1, logprobs=None)
    async with aclosing(engine.generate(replace(request, constraint=None, sampling=sampling))) as chunks:
        async for _ in chunks:
            pass


class Engine(Protocol):
    """Anything that turns token ids into token ids."""

    @property
    def max_model_len(self) -> int:
        """Prompt and output together may have this many tokens; known after `start`."""
        ...

    async def start(self) -> None:
        """Load or connect. Raises EngineDown."""
        ...

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Chunks until one with `finish`. Closing the generator early (aclose, cancellation) aborts the request in the engine.

        Raises BadPrompt before the first chunk, EngineDown at any time.
        """
        ...

    async def prefill(self, request: GenerateRequest) -> None:
        """Read the prompt, so that a request which begins with it finds it cached. Raises as `generate` does."""
        ...

    # Whether `measure` costs no generation, so that every prompt with images may be measured.
    measures: bool

    @property
    def sees(self) -> bool:
        """Whether the model behind it takes images, as far as the engine knows; known after `start`."""
        ...

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """How many tokens a prompt has once every placeholder is as long as its image is to the model. Raises BadPrompt, EngineDown."""
        ...

    # Whether the engine compiles constraints with xgrammar as it is installed here, so that a refusal of that one is known before.
    has_xgrammar: bool

    def check_constraint(self, constraint: Constraint) -> None:
        """Whether the engine takes a constraint, as far as that is known without compiling it; linear in its size. Raises BadPrompt."""
        ...

    async def is_healthy(self) -> bool:
        """Whether a request sent now would be served."""
        ...

    async def close(self) -> None:
        """Abort what runs and let go of everything that `start` took."""
        ...
