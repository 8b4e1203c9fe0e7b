"""Generation that survives engine failures: the tokens so far go back to the engine as the end of the prompt."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace

from responses_app.dialects.constraints.structural_tag import not_yet_binding
from responses_app.engine_interface import (
    Chunk,
    Engine,
    EngineError,
    EngineLacksModel,
    EngineMoved,
    EngineOverloaded,
    EngineUnavailable,
    Finish,
    GenerateRequest,
    Sampling,
)
from responses_app.engines.urls import engine_host

logger = logging.getLogger("responses.generation")

ENGINE_POLL_S = 0.25
# Pause before the next attempt at an engine that has refused a request and named no pause.
REFUSAL_PAUSE_S = 1.0
# An engine that reports health and fails at once, so often in a row, has a fault that a retry does not repair.
MAX_FRUITLESS_ATTEMPTS = 3


class NotResumable(EngineError):
    """The generation cannot be continued exactly."""


class Diverged(NotResumable):
    """Difference between the repeated generation and the first generation."""


class Generation:
    """Chunks of an engine request. `tokens` are all tokens so far, including tokens of an earlier owner of the run.

    An engine that restarts continues behind these tokens. Two kinds of requests restart from token 0 instead, and the repeated
    tokens are compared. A constraint holds from the first token on: such a request restarts if its result is deterministic,
    continues if the constraint does not bind yet, and fails otherwise. With a seed or penalties the next token depends on the
    number of tokens: such a request restarts, but continues if the repetition diverges (batch-dependent rounding).
    `spell` returns the text of tokens. `wait` is how long the engine may be away, in seconds. An engine that refuses a request,
    because too many wait, is asked again if `is_patient` or if there are tokens.
    """

    def __init__(
        self,
        engine: Engine,
        request: GenerateRequest,
        spell: Callable[[Sequence[int]], str],
        *,
        tokens: Sequence[int] = (),
        wait: float = 0.0,
        owner_epoch: int = 1,
        is_patient: bool = False,
    ) -> None:
        self.tokens = list(tokens)
        self._is_patient, self._refused_until_s = is_patient, 0.0
        self._engine, self.request, self._spell, self._wait = engine, request, spell, wait
        # Request ids are unique in an engine: every owner and every attempt has its own.
        self._take, self._attempt = owner_epoch, 0
        self._strayed = False

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Yield chunks up to the chunk with `finish`. Raises NotResumable, RequestRejected, EngineUnavailable after `wait` seconds."""
        fruitless = 0
        while True:
            if (finish := self._finished_reason()) is not None:
                yield Chunk(finish=finish)
                return
            before = len(self.tokens)
            try:
                async with aclosing(self._run_attempt()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except Diverged as error:
                if self._is_constrained:
                    raise
                logger.warning("%s: %s It continues behind the tokens so far.", self.request.id, error)
                self._strayed = True
            except EngineOverloaded as error:
                if not (self._is_patient or self.tokens) or not await self._wait_for_place(error):
                    raise
            except EngineUnavailable as error:
                fruitless = fruitless + 1 if len(self.tokens) == before else 0
                logger.warning("%s: %s", self.request.id, error)
                if fruitless >= MAX_FRUITLESS_ATTEMPTS or not await self._can_go_on(error):
                    raise

    @property
    def context_window(self) -> int:
        """Tokens of the context of the engine."""
        return self._engine.max_model_len

    @property
    def engine_name(self) -> str:
        """Host and port of the engine that has generated last, else `local`."""
        used_engines = self.request.used_engines
        return used_engines[-1] if used_engines else engine_host(self._engine)

    async def warm_up(self) -> None:
        """Have the engine read the prompt without generating. Raises EngineUnavailable, RequestRejected."""
        await self._engine.prefill(self._attempt_request(0))

    async def _run_attempt(self) -> AsyncGenerator[Chunk, None]:
        again = self._must_restart()
        base = 0 if again else len(self.tokens)
        known = list(self.tokens) if again else []
        async with aclosing(self._engine.generate(self._attempt_request(base))) as chunks:
            async for chunk in chunks:
                fresh = _skip_known(known, chunk)
                self.tokens += fresh.tokens
                if chunk.prompt is not None or chunk.cached is not None:
                    # Only in the first or the last chunk; the other chunks pass unchanged.
                    fresh = replace(fresh, prompt=chunk.prompt and chunk.prompt - base, cached=self._cached(chunk))
                yield fresh
        if known:
            raise Diverged("The answer was made again and ended sooner: it cannot be continued exactly.")

    def _attempt_request(self, base: int) -> GenerateRequest:
        """Return the request of the next attempt; `base` tokens of the answer are part of the prompt."""
        request = self.request
        self._attempt += 1
        if self._take > 1 or self._attempt > 1:
            request = replace(request, id=f"{request.id}-{self._take}-{self._attempt}")
        if not base:
            return request
        sampling = replace(
            request.sampling,
            max_tokens=request.sampling.max_tokens - base,
            bias=_bias_with_penalties(request.sampling, self.tokens),
        )
        return replace(request, prompt=[*request.prompt, *self.tokens], sampling=sampling, prior_tokens=base)

    def _must_restart(self) -> bool:
        """Return whether the next attempt restarts from token 0. Raises NotResumable."""
        if not self.tokens:
            return False
        sampling = self.request.sampling
        is_deterministic = sampling.temperature == 0 or sampling.seed is not None
        if not self._is_constrained:
            return is_deterministic and _is_history_dependent(sampling) and not self._strayed
        if not is_deterministic:
            raise NotResumable("The answer was bound to a grammar and chosen by chance: it cannot be continued exactly.")
        return True

    @property
    def _is_constrained(self) -> bool:
        """Return whether a constraint binds the tokens so far."""
        constraint = self.request.constraint
        return constraint is not None and not not_yet_binding(constraint, self._spell(self.tokens))

    def _finished_reason(self) -> Finish | None:
        """Return the finish of the generation if the engine failed after the last token, else None."""
        sampling = self.request.sampling
        if self.tokens and not sampling.ignore_eos and self.tokens[-1] in sampling.stop_token_ids:
            return "stop"
        return "length" if len(self.tokens) >= sampling.max_tokens else None

    def _cached(self, chunk: Chunk) -> int | None:
        return None if chunk.cached is None else min(chunk.cached, self.request.length or len(self.request.prompt))

    async def _wait_for_place(self, error: EngineOverloaded) -> bool:
        """Wait as long as the engine asks for. Return False once the engine has refused for `wait` seconds."""
        now_s = time.monotonic()
        self._refused_until_s = self._refused_until_s or now_s + self._wait
        if now_s >= self._refused_until_s:
            return False
        await asyncio.sleep(error.retry_after_s or REFUSAL_PAUSE_S)
        return True

    async def _can_go_on(self, error: EngineUnavailable) -> bool:
        """Return whether another engine of a pool continues at once, or the engine is healthy again in time."""
        if isinstance(error, EngineLacksModel) and not (self._is_patient or self.tokens):
            return False
        return isinstance(error, EngineMoved) or await self._wait_for_engine()

    async def _wait_for_engine(self) -> bool:
        """Wait for the engine. Return True if the engine is healthy again in time."""
        until = time.monotonic() + self._wait
        while time.monotonic() < until:
            await asyncio.sleep(ENGINE_POLL_S)
            if await self._engine.is_healthy():
                return True
        return False


def _is_history_dependent(sampling: Sampling) -> bool:
    """Return whether the next token depends on the number of tokens so far, as with a seed or penalties."""
    seeded = sampling.seed is not None and sampling.temperature > 0
    return seeded or bool(sampling.presence_penalty or sampling.frequency_penalty)


def _bias_with_penalties(sampling: Sampling, tokens: Sequence[int]) -> Mapping[int, float]:
    """Return the bias less the penalties for the tokens so far: the engine takes these tokens for prompt and does not count them.

    The engine adds penalties for new tokens. So frequency penalties are exact; a presence penalty counts twice for a token that
    is generated again.
    """
    if not (sampling.presence_penalty or sampling.frequency_penalty):
        return sampling.bias
    penalties = {
        token: sampling.presence_penalty + count * sampling.frequency_penalty for token, count in Counter(tokens).items()
    }
    biased = {token: sampling.bias.get(token, 0.0) - penalty for token, penalty in penalties.items()}
    return {**sampling.bias, **biased}


def _skip_known(known: list[int], chunk: Chunk) -> Chunk:
    """Return the part of the chunk behind the `known` tokens, which are removed from `known`. Raises Diverged if the chunk differs."""
    if not known:
        return chunk
    count = min(len(known), len(chunk.tokens))
    if list(chunk.tokens[:count]) != known[:count]:
        raise Diverged("The answer was made again and came out differently: it cannot be continued exactly.")
    del known[:count]
    return replace(chunk, tokens=chunk.tokens[count:], logprobs=chunk.logprobs[count:])
