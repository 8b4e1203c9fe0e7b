"""One generation, across the deaths of the engine that makes it: what was heard goes back as the end of the prompt (F1, F2)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import replace

from responses_app.dialects.tags import untouched
from responses_app.engines.border import Chunk, Engine, EngineDown, EngineError, Finish, Request, Sampling

logger = logging.getLogger("responses.generation")

LOOK = 0.25
# An engine that says it lives and fails at once has a fault that asking again does not mend.
FRUITLESS = 3


class Broken(EngineError):
    """What was heard cannot be continued exactly."""


class Strayed(Broken):
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
        request: Request,
        spell: Callable[[Sequence[int]], str],
        *,
        heard: Sequence[int] = (),
        wait: float = 0.0,
        take: int = 1,
    ) -> None:
        self.heard = list(heard)
        self._engine, self._request, self._spell, self._wait = engine, request, spell, wait
        # Ids are unique in an engine for ever: every owner and every attempt asks under another.
        self._take, self._attempt = take, 0
        self._strayed = False

    async def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Chunks up to one with `finish`. Raises EngineDown when the engine stays away for too long, Broken, BadPrompt."""
        fruitless = 0
        while True:
            if (finish := self._over()) is not None:
                yield Chunk(finish=finish)
                return
            before = len(self.heard)
            try:
                async with aclosing(self._attempted()) as chunks:
                    async for chunk in chunks:
                        yield chunk
                return
            except Strayed as error:
                if self._bound:
                    raise
                logger.warning("%s: %s It goes on from what it has said.", self._request.id, error)
                self._strayed = True
            except EngineDown as error:
                fruitless = fruitless + 1 if len(self.heard) == before else 0
                logger.warning("%s: %s", self._request.id, error)
                if fruitless >= FRUITLESS or not await self._back():
                    raise

    async def warm(self) -> None:
        """Have the prompt read, and nothing said. Raises EngineDown, BadPrompt."""
        await self._engine.warm(self._asked(0))

    async def _attempted(self) -> AsyncGenerator[Chunk, None]:
        again = self._again()
        base = 0 if again else len(self.heard)
        known = list(self.heard) if again else []
        async with aclosing(self._engine.generate(self._asked(base))) as chunks:
            async for chunk in chunks:
                fresh = _behind(known, chunk)
                self.heard += fresh.tokens
                if chunk.prompt is not None or chunk.cached is not None:
                    # Once, with the first chunk or the last; the others go as they are.
                    fresh = replace(fresh, prompt=chunk.prompt and chunk.prompt - base, cached=self._cached(chunk))
                yield fresh
        if known:
            raise Strayed("The answer was made again and ended sooner: it cannot be continued exactly.")

    def _asked(self, base: int) -> Request:
        """The request of this attempt, that many tokens of the answer being told already."""
        request = self._request
        self._attempt += 1
        if self._take > 1 or self._attempt > 1:
            request = replace(request, id=f"{request.id}-{self._take}-{self._attempt}")
        if not base:
            return request
        sampling = replace(
            request.sampling, max_tokens=request.sampling.max_tokens - base, bias=_penalised(request.sampling, self.heard)
        )
        return replace(request, prompt=[*request.prompt, *self.heard], sampling=sampling, heard=base)

    def _again(self) -> bool:
        """Whether to begin at the beginning. Raises Broken."""
        if not self.heard:
            return False
        sampling = self._request.sampling
        sure = sampling.temperature == 0 or sampling.seed is not None
        if not self._bound:
            return sure and _counting(sampling) and not self._strayed
        if not sure:
            raise Broken("The answer was bound to a grammar and chosen by chance: it cannot be continued exactly.")
        return True

    @property
    def _bound(self) -> bool:
        """Whether a constraint has begun to bind."""
        constraint = self._request.constraint
        return constraint is not None and not untouched(constraint, self._spell(self.heard))

    def _over(self) -> Finish | None:
        """How it has ended already, if the engine was lost between its last token and its last word."""
        sampling = self._request.sampling
        if self.heard and not sampling.ignore_eos and self.heard[-1] in sampling.stop_token_ids:
            return "stop"
        return "length" if len(self.heard) >= sampling.max_tokens else None

    def _cached(self, chunk: Chunk) -> int | None:
        return None if chunk.cached is None else min(chunk.cached, self._request.length or len(self._request.prompt))

    async def _back(self) -> bool:
        """Wait for the engine, as long as it may be away."""
        until = time.monotonic() + self._wait
        while time.monotonic() < until:
            await asyncio.sleep(LOOK)
            if await self._engine.alive():
                return True
        return False


def _counting(sampling: Sampling) -> bool:
    """Whether the next token depends on how many there were, and not only on which."""
    seeded = sampling.seed is not None and sampling.temperature > 0
    return seeded or bool(sampling.presence_penalty or sampling.frequency_penalty)


def _penalised(sampling: Sampling, heard: Sequence[int]) -> dict[int, float]:
    """The penalties for what was heard, which the engine takes for a part of the prompt and would not count.

    It adds its own for what it says itself. So frequencies are what they would have been, and presence is too until a token
    that was heard is said again, which counts twice.
    """
    if not (sampling.presence_penalty or sampling.frequency_penalty):
        return {}
    return {token: -(sampling.presence_penalty + count * sampling.frequency_penalty) for token, count in Counter(heard).items()}


def _behind(known: list[int], chunk: Chunk) -> Chunk:
    """What of the chunk is new; what is not leaves `known`. Raises Broken where it differs."""
    if not known:
        return chunk
    count = min(len(known), len(chunk.tokens))
    if list(chunk.tokens[:count]) != known[:count]:
        raise Strayed("The answer was made again and came out differently: it cannot be continued exactly.")
    del known[:count]
    return replace(chunk, tokens=chunk.tokens[count:], logprobs=chunk.logprobs[count:])
