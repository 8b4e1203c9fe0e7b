"""Replay engine: plays a tape instead of a model, for tests, demonstrations and failure drills."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineOverloaded,
    EngineUnavailable,
    Finish,
    GenerateRequest,
    RequestRejected,
)
from responses_app.engines.replay import tape
from responses_app.engines.replay.tape import Delay, Fault, Hold, Recording, Step, Tokens, recording

__all__ = [
    "Delay",
    "Fault",
    "Hold",
    "Recording",
    "ReplayEngine",
    "Tokens",
    "UnexpectedRequest",
    "UnusedRecordings",
    "recording",
]

MAX_MODEL_LEN = 131_072
# Number of requests remembered with `loop`.
REMEMBERED = 100
# Seconds between two looks for the file of a Hold.
LOOK_S = 0.01


class UnexpectedRequest(Exception):
    """No recording matches the request. Not an EngineError: the test is wrong, not the engine."""


class UnusedRecordings(Exception):
    """The engine was closed before all recordings were used."""


class ReplayEngine:
    """Replay engine: each request is answered by a recording. Public attributes show the history.

    `requests` are all answered requests, oldest first; `prefilled` those whose prompt was only prefilled; `aborted` the ids of
    those closed early; `running` the ids still generating.

    Like a real engine it ends with `length` at `max_tokens` and at a full context, and with `stop` after a stop token. A
    request with `prior_tokens` gets the rest of its recording. With `loop` a used recording moves to the end of the tape, and
    only the last REMEMBERED requests are remembered. Every image counts as `image_tokens` tokens, its placeholder included;
    with 0 the engine does not support images.
    """

    counts_cheaply = True

    def __init__(
        self, lines: Iterable[Recording] = (), *, loop: bool = False, max_model_len: int = MAX_MODEL_LEN, image_tokens: int = 0
    ) -> None:
        self._tape = deque(lines)
        self._loop = loop
        self._max_model_len = max_model_len
        self._image_tokens = image_tokens
        self._away_until = 0.0
        self._started = self._closed = False
        self.requests: list[GenerateRequest] = []
        self.prefilled: list[GenerateRequest] = []
        self.aborted: list[str] = []
        self.running: set[str] = set()

    @classmethod
    def from_file(cls, path: str | Path, *, loop: bool = False, max_model_len: int = MAX_MODEL_LEN) -> ReplayEngine:
        """Create an engine with the tape at `path`. Raises InvalidTape, OSError."""
        return cls(tape.read_tape(path), loop=loop, max_model_len=max_model_len)

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together."""
        return self._max_model_len

    @property
    def supports_images(self) -> bool:
        """True if `image_tokens` is above 0."""
        return self._image_tokens > 0

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens, see `Engine.count_tokens`."""
        return self._length(prompt, images)

    @property
    def left(self) -> list[Recording]:
        """The unused recordings."""
        return list(self._tape)

    def add(self, *lines: Recording) -> None:
        """Append recordings to the tape."""
        self._tape.extend(lines)

    def fail_for(self, seconds: float = float("inf")) -> None:
        """Be unavailable for `seconds`: new requests raise EngineUnavailable, running requests raise at the next chunk."""
        self._away_until = monotonic() + seconds

    def recover(self) -> None:
        """Be available again."""
        self._away_until = 0.0

    async def prefill(self, request: GenerateRequest) -> None:
        """Remember the request in `prefilled`; no recording is used. Raises RequestRejected, EngineUnavailable."""
        self._check_up()
        self._check_fits(request)
        self.prefilled.append(request)
        if self._loop:
            del self.prefilled[:-REMEMBERED]

    async def start(self) -> None:
        """Become available."""
        self._started, self._closed = True, False

    has_xgrammar = False
    refusal_s = 0.0

    def check_constraint(self, constraint: Constraint) -> None:
        """Accept every constraint: recordings ignore constraints."""

    async def is_healthy(self) -> bool:
        """Return True if started, not closed and not within `fail_for`."""
        return self._started and not self._closed and not self._is_away

    async def close(self, strict: bool = False) -> None:
        """Stop running requests. With `strict`, raise UnusedRecordings if recordings are left."""
        self._closed = True
        if strict and self._tape and not self._loop:
            raise UnusedRecordings(f"{len(self._tape)} lines were never asked for; the first is {self._tape[0]}")

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate the chunks of the next matching recording. Raises RequestRejected, EngineUnavailable, UnexpectedRequest."""
        self._check_up()
        length = self._check_fits(request)
        line = _skip_prior(self._take(request), request.prior_tokens)
        self.requests.append(request)
        if self._loop:
            del self.requests[:-REMEMBERED], self.aborted[:-REMEMBERED]
        self.running.add(request.id)
        # Like a real engine, report the number of prompt tokens with images once.
        prompt_tokens = length if request.images else None
        ended = has_slept = False
        try:
            for step in _trim(line, request, self._max_model_len - length):
                if isinstance(step, Chunk):
                    if not has_slept:
                        await asyncio.sleep(0)  # A real engine yields to the event loop between steps, too.
                    has_slept = False
                    self._check_up()
                    ended = step.finish is not None
                    yield step if prompt_tokens is None else replace(step, prompt=prompt_tokens)
                    prompt_tokens = None
                else:
                    await self._apply_fault(step)
                    has_slept = True
        except (EngineUnavailable, RequestRejected):
            ended = True
            raise
        finally:
            self.running.discard(request.id)
            if not ended:
                self.aborted.append(request.id)

    def _check_fits(self, request: GenerateRequest) -> int:
        length = self._length(request.prompt, request.images)
        if length >= self._max_model_len:
            raise RequestRejected(f"the prompt has {length} tokens, the model takes {self._max_model_len}")
        return length

    def _length(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        return len(prompt) + len(images) * (self._image_tokens - 1)

    @property
    def _is_away(self) -> bool:
        return monotonic() < self._away_until

    def _check_up(self) -> None:
        if self._closed or not self._started:
            raise EngineUnavailable("the scripted engine is not started")
        if self._is_away:
            raise EngineUnavailable("the scripted engine is away")

    def _take(self, request: GenerateRequest) -> Recording:
        prompt = request.prompt[: len(request.prompt) - request.prior_tokens]
        line = next((line for line in self._tape if line.matches(prompt)), None)
        if line is None:
            raise UnexpectedRequest(f"no line for {request.id}: {len(self._tape)} left, prompt {_abbreviate(request.prompt)}")
        del self._tape[next(at for at, other in enumerate(self._tape) if other is line)]
        if self._loop:
            self._tape.append(line)
        return line

    async def _apply_fault(self, step: Delay | Hold | Fault) -> None:
        if isinstance(step, Delay):
            await asyncio.sleep(step.seconds)
        elif isinstance(step, Hold):
            while not step.path.exists():  # noqa: ASYNC110 - another process makes the file.
                await asyncio.sleep(LOOK_S)
        elif step.kind == "bad":
            raise RequestRejected(step.message)
        elif step.kind == "busy":
            raise EngineOverloaded(step.message, step.seconds or None)
        else:
            self.fail_for(step.seconds)
            raise EngineUnavailable(step.message)


def _skip_prior(line: Recording, prior_tokens: int) -> Recording:
    """Return the recording without the first `prior_tokens` tokens, already received by an earlier request."""
    if not prior_tokens:
        return line
    steps: list[Step] = []
    for step in line.steps:
        if isinstance(step, Tokens):
            skipped = min(prior_tokens, len(step.tokens))
            prior_tokens -= skipped
            if skipped < len(step.tokens):
                steps.append(Tokens(step.tokens[skipped:], step.logprobs[skipped:]))
        elif not prior_tokens:
            steps.append(step)
    return replace(line, steps=steps)


def _trim(line: Recording, request: GenerateRequest, budget: int) -> Iterator[Chunk | Delay | Hold | Fault]:
    """Cut the recording at a stop token or the token limit; `finish` is on the last chunk."""
    budget = min(request.sampling.max_tokens, budget)
    stops = frozenset(request.sampling.stop_token_ids)
    cached = line.cached
    for at, step in enumerate(line.steps):
        if not isinstance(step, Tokens):
            yield step
            continue
        size, finish = _cut(step, budget, stops)
        budget -= size
        if finish is None and at + 1 == len(line.steps):
            finish = line.finish
        elif finish is None and budget == 0 and _has_tokens(line.steps[at + 1 :]):
            finish = "length"
        yield Chunk(tuple(step.tokens[:size]), tuple(step.logprobs[:size]), finish, cached)
        if finish:
            return
        cached = None
    yield Chunk(finish=line.finish, cached=cached)


def _cut(step: Tokens, budget: int, stops: frozenset[int]) -> tuple[int, Finish | None]:
    """Return the number of generated tokens of `step` and the finish reason, if any. A stop token wins over the limit."""
    for at, token in enumerate(step.tokens[:budget]):
        if token in stops:
            return at + 1, "stop"
    return (budget, "length") if len(step.tokens) > budget else (len(step.tokens), None)


def _has_tokens(steps: Iterable[Step]) -> bool:
    return any(isinstance(step, Tokens) and step.tokens for step in steps)


def _abbreviate(prompt: Iterable[int]) -> str:
    ids = list(prompt)
    return str(ids) if len(ids) <= 32 else f"… {ids[-32:]}"
