"""One generation, across the deaths of the engine that makes it: what was heard goes back as the end of the prompt (F1, F2)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from responses_app.dialects.constraints.structural_tag import not_yet_binding
from responses_app.engine_interface import Chunk, Engine, EngineError, EngineUnavailable, Finish, GenerateRequest, Sampling

logger = logging.getLogger("responses.generation")

LOOK = 0.25
# An engine that says it lives and fails at once has a fault that asking again does not mend.
FRUITLESS = 3


class NotResumable(EngineError):
    """What was heard cannot be continued exactly."""


class Diverged(NotResumable):
    """What was made again came out differently."""


class Generation:
    """The chunks of one request; `heard` are all tokens so far, those of an earlier owner of the run included.

    A constraint holds from the first token on and engines cannot be told where in it they are. So a constrained generation is
    made again from its beginning if it is sure to come out the same, which is then checked, or it goes on if the constraint
    has not begun to bind; otherwise it is Broken. One whose next token depends on how many there were, as with a seed or with
    penalties, is made again too; but if it strays, as another batch may round otherwise, it goes on all the same.
    `spell` gives the text of tokens. `wait` is how many seconds an engine may be away.
    """

    def __init__(
        self,
        engine: Engine,
        request: GenerateRequest,
        spell: Callable[[Sequence[int]], str],
        *,
        heard: Sequence[int] = (),
        wait: float = 0.0,
        owner_epoch: int = 1,
    ) -> None:
        self.heard = list(heard)
        self._engine, self._request, self._spell, self._wait = engine, request, spell, wait
        # Ids are unique in an engine for ever: every owner and every attempt asks under another.
        self._take, self._attempt = owner_epoch, 0
        self._strayed = False

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Chunks up to one with `finish`. Raises EngineDown when the engine stays away for too long, Broken, BadPrompt."""
        fruitless = 0
        while True:
            if (finish := self._finished_reason()) is not None:
                yield Chunk(finish=finish)
                return
            before = len(self.heard)
            try:
                async with aclosing(self._run_attempt()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except Diverged as error:
                if self._is_constrained:
                    raise
                logger.warning("%s: %s It goes on from what it has said.", self._request.id, error)
                self._strayed = True
            except EngineUnavailable as error:
                fruitless = fruitless + 1 if len(self.heard) == before else 0
                logger.warning("%s: %s", self._request.id, error)
                if fruitless >= FRUITLESS or not await self._wait_for_engine():
                    raise

    async def warm_up(self) -> None:
        """Have the prompt read, and nothing said. Raises EngineDown, BadPrompt."""
        await self._engine.prefill(self._attempt_request(0))

    async def _run_attempt(self) -> AsyncGenerator[Chunk, None]:
        again = self._must_restart()
        base = 0 if again else len(self.heard)
        known = list(self.heard) if again else []
        async with aclosing(self._engine.generate(self._attempt_request(base))) as chunks:
            async for chunk in chunks:
                fresh = _skip_known(known, chunk)
                self.heard += fresh.tokens
                if chunk.prompt is not None or chunk.cached is not None:
                    # Once, with the first chunk or the last; the others go as they are.
                    fresh = replace(fresh, prompt=chunk.prompt and chunk.prompt - base, cached=self._cached(chunk))
                yield fresh
        if known:
            raise Diverged("The answer was made again and ended sooner: it cannot be continued exactly.")

    def _attempt_request(self, base: int) -> GenerateRequest:
        """The request of this attempt, that many tokens of the answer being told already."""
        request = self._request
        self._attempt += 1
        if self._take > 1 or self._attempt > 1:
            request = replace(request, id=f"{request.id}-{self._take}-{self._attempt}")
        if not base:
            return request
        sampling = replace(
            request.sampling,
            max_tokens=request.sampling.max_tokens - base,
            bias=_penalties_as_bias(request.sampling, self.heard),
        )
        return replace(request, prompt=[*request.prompt, *self.heard], sampling=sampling, prior_tokens=base)

    def _must_restart(self) -> bool:
        """Whether to begin at the beginning. Raises Broken."""
        if not self.heard:
            return False
        sampling = self._request.sampling
        sure = sampling.temperature == 0 or sampling.seed is not None
        if not self._is_constrained:
            return sure and _is_history_dependent(sampling) and not self._strayed
        if not sure:
            raise NotResumable("The answer was bound to a grammar and chosen by chance: it cannot be continued exactly.")
        return True

    @property
    def _is_constrained(self) -> bool:
        """Whether a constraint has begun to bind."""
        constraint = self._request.constraint
        return constraint is not None and not not_yet_binding(constraint, self._spell(self.heard))

    def _finished_reason(self) -> Finish | None:
        """How it has ended already, if the engine was lost between its last token and its last word."""
        sampling = self._request.sampling
        if self.heard and not sampling.ignore_eos and self.heard[-1] in sampling.stop_token_ids:
            return "stop"
        return "length" if len(self.heard) >= sampling.max_tokens else None

    def _cached(self, chunk: Chunk) -> int | None:
        return None if chunk.cached is None else min(chunk.cached, self._request.length or len(self._request.prompt))

    async def _wait_for_engine(self) -> bool:
        """Wait for the engine, as long as it may be away."""
        until = time.monotonic() + self._wait
        while time.monotonic() < until:
            await asyncio.sleep(LOOK)
            if await self._engine.is_healthy():
                return True
        return False


def _is_history_dependent(sampling: Sampling) -> bool:
    """Whether the next token depends on how many there were, and not only on which."""
    seeded = sampling.seed is not None and sampling.temperature > 0
    return seeded or bool(sampling.presence_penalty or sampling.frequency_penalty)


def _penalties_as_bias(sampling: Sampling, heard: Sequence[int]) -> dict[int, float]:
    """The penalties for what was heard, which the engine takes for a part of the prompt and would not count.

    It adds its own for what it says itself. So frequencies are what they would have been, and presence is too until a token
    that was heard is said again, which counts twice.
    """
    if not (sampling.presence_penalty or sampling.frequency_penalty):
        return {}
    return {token: -(sampling.presence_penalty + count * sampling.frequency_penalty) for token, count in Counter(heard).items()}


def _skip_known(known: list[int], chunk: Chunk) -> Chunk:
    """What of the chunk is new; what is not leaves `known`. Raises Broken where it differs."""
    if not known:
        return chunk
    count = min(len(known), len(chunk.tokens))
    if list(chunk.tokens[:count]) != known[:count]:
        raise Diverged("The answer was made again and came out differently: it cannot be continued exactly.")
    del known[:count]
    return replace(chunk, tokens=chunk.tokens[count:], logprobs=chunk.logprobs[count:])
