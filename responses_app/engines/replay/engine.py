"""An engine that replays a tape instead of a model: for tests, demonstrations and for trying out failures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic

from responses_app.engine_interface import Chunk, Constraint, EngineUnavailable, Finish, GenerateRequest, RequestRejected
from responses_app.engines.replay import tape
from responses_app.engines.replay.tape import Delay, Fault, Recording, Step, Tokens, recording

__all__ = ["Delay", "Fault", "Recording", "ReplayEngine", "Tokens", "UnexpectedRequest", "UnusedRecordings", "recording"]

MAX_MODEL_LEN = 131_072
# Of what happened, where the tape has no end.
REMEMBERED = 100


class UnexpectedRequest(Exception):
    """A request came that no line of the tape answers. Not an EngineError: the test is wrong, not the engine."""


class UnusedRecordings(Exception):
    """The engine was closed although lines of the tape were never asked for."""


class ReplayEngine:
    """Replays lines, each to one request; what happened can be read from the attributes.

    `requests` are all requests answered so far, oldest first, `warmed` those whose prompt was only read; `aborted` the ids of
    those closed early; `running` the ids of those that still generate. Like a real engine it ends at `max_tokens` and at a full
    context with `length`, and behind a stop token with `stop`, and a request that goes on with an answer gets the rest of its
    line. With `loop` a used line goes back to the end of the tape, and only the last of what happened is remembered. Every image
    counts as `image_tokens` tokens, its placeholder included; with none it takes no images.
    """

    measures = True

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
        self.warmed: list[GenerateRequest] = []
        self.aborted: list[str] = []
        self.running: set[str] = set()

    @classmethod
    def from_file(cls, path: str | Path, *, loop: bool = False, max_model_len: int = MAX_MODEL_LEN) -> ReplayEngine:
        """An engine with the tape at `path`. Raises BadTape, OSError."""
        return cls(tape.read(path), loop=loop, max_model_len=max_model_len)

    @property
    def max_model_len(self) -> int:
        return self._max_model_len

    @property
    def sees(self) -> bool:
        return self._image_tokens > 0

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """See `Engine.measure`."""
        return self._length(prompt, images)

    @property
    def left(self) -> list[Recording]:
        """The lines that nobody has asked for yet."""
        return list(self._tape)

    def add(self, *lines: Recording) -> None:
        """Put more lines at the end of the tape."""
        self._tape.extend(lines)

    def fail_for(self, seconds: float = float("inf")) -> None:
        """Be unreachable from now on, for so long: new requests raise EngineDown and running ones do at their next chunk."""
        self._away_until = monotonic() + seconds

    def recover(self) -> None:
        """Be reachable again."""
        self._away_until = 0.0

    async def prefill(self, request: GenerateRequest) -> None:
        """Remember that it was asked; no line is used up. Raises BadPrompt, EngineDown."""
        self._check_up()
        self._check_fits(request)
        self.warmed.append(request)
        if self._loop:
            del self.warmed[:-REMEMBERED]

    async def start(self) -> None:
        self._started, self._closed = True, False

    has_xgrammar = False

    def check_constraint(self, constraint: Constraint) -> None:
        """A tape obeys no constraint, so it takes any."""

    async def is_healthy(self) -> bool:
        return self._started and not self._closed and not self._away

    async def close(self, strict: bool = False) -> None:
        """Stop what runs. With `strict`, raise LeftoverLines if the tape was not played to its end."""
        self._closed = True
        if strict and self._tape and not self._loop:
            raise UnusedRecordings(f"{len(self._tape)} lines were never asked for; the first is {self._tape[0]}")

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """The chunks of the next line that fits. Raises BadPrompt, EngineDown, UnexpectedRequest."""
        self._check_up()
        length = self._check_fits(request)
        line = _behind(self._take(request), request.heard)
        self.requests.append(request)
        if self._loop:
            del self.requests[:-REMEMBERED], self.aborted[:-REMEMBERED]
        self.running.add(request.id)
        # Like a real engine it says what the images have come to, once.
        told = length if request.images else None
        ended = rested = False
        try:
            for step in _trim(line, request, self._max_model_len - length):
                if isinstance(step, Chunk):
                    if not rested:
                        await asyncio.sleep(0)  # A real engine hands over between steps too.
                    rested = False
                    self._check_up()
                    ended = step.finish is not None
                    yield step if told is None else replace(step, prompt=told)
                    told = None
                else:
                    await self._apply_fault(step)
                    rested = True
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
    def _away(self) -> bool:
        return monotonic() < self._away_until

    def _check_up(self) -> None:
        if self._closed or not self._started:
            raise EngineUnavailable("the scripted engine is not started")
        if self._away:
            raise EngineUnavailable("the scripted engine is away")

    def _take(self, request: GenerateRequest) -> Recording:
        told = request.prompt[: len(request.prompt) - request.heard]
        line = next((line for line in self._tape if line.fits(told)), None)
        if line is None:
            raise UnexpectedRequest(f"no line for {request.id}: {len(self._tape)} left, prompt {_brief(request.prompt)}")
        del self._tape[next(at for at, other in enumerate(self._tape) if other is line)]
        if self._loop:
            self._tape.append(line)
        return line

    async def _apply_fault(self, step: Delay | Fault) -> None:
        if isinstance(step, Delay):
            await asyncio.sleep(step.seconds)
        elif step.kind == "bad":
            raise RequestRejected(step.message)
        else:
            self.fail_for(step.seconds)
            raise EngineUnavailable(step.message)


def _behind(line: Recording, heard: int) -> Recording:
    """The rest of a line of which so many tokens were said to an earlier request."""
    if not heard:
        return line
    steps: list[Step] = []
    for step in line.steps:
        if isinstance(step, Tokens):
            said = min(heard, len(step.tokens))
            heard -= said
            if said < len(step.tokens):
                steps.append(Tokens(step.tokens[said:], step.logprobs[said:]))
        elif not heard:
            steps.append(step)
    return replace(line, steps=steps)


def _trim(line: Recording, request: GenerateRequest, room: int) -> Iterator[Chunk | Delay | Fault]:
    """The line as this request gets it: cut at the stop token or the token limit, `finish` on the last chunk."""
    room = min(request.sampling.max_tokens, room)
    stops = frozenset(request.sampling.stop_token_ids)
    cached = line.cached
    for at, step in enumerate(line.steps):
        if not isinstance(step, Tokens):
            yield step
            continue
        size, finish = _cut(step, room, stops)
        room -= size
        if finish is None and at + 1 == len(line.steps):
            finish = line.finish
        elif finish is None and room == 0 and _speaks(line.steps[at + 1 :]):
            finish = "length"
        yield Chunk(tuple(step.tokens[:size]), tuple(step.logprobs[:size]), finish, cached)
        if finish:
            return
        cached = None
    yield Chunk(finish=line.finish, cached=cached)


def _cut(step: Tokens, room: int, stops: frozenset[int]) -> tuple[int, Finish | None]:
    """How many of the tokens are generated, and why it ends there, if it does. A stop token wins over the limit."""
    for at, token in enumerate(step.tokens[:room]):
        if token in stops:
            return at + 1, "stop"
    return (room, "length") if len(step.tokens) > room else (len(step.tokens), None)


def _speaks(steps: Iterable[Step]) -> bool:
    return any(isinstance(step, Tokens) and step.tokens for step in steps)


def _brief(prompt: Iterable[int]) -> str:
    ids = list(prompt)
    return str(ids) if len(ids) <= 32 else f"… {ids[-32:]}"
