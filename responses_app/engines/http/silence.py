"""Silence of a remote engine: requests wait and get nothing, although the server answers health checks.

`vllm serve` answers them while the process of its core runs, also if the core hangs. A long prompt in a long queue is silent too, so
silence alone never ends a request. A pool moves requests to another engine, and a generation of one token decides whether the silent
engine is out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

import httpx2

from responses_app.engine_interface import EngineUnavailable, GenerateRequest
from responses_app.engines.http.codec import OVERLOADED

logger = logging.getLogger("responses.engines")

# Time without any data, beside the time for the prompts that wait for their first token.
SILENCE_S = 120.0
MIN_PROMPT_TOKENS_PER_S = 1000.0
# Limit for the generation of one token.
PROBE_S = 5.0


@dataclass(slots=True)
class WaitingRequest:
    """Request at the engine: its begin, the tokens of its prompt until the first data, and the task that waits for data.

    A request that another engine has had before stays: two slow engines must not move a long prompt to and fro.
    """

    began_s: float
    prompt_tokens: int
    may_move: bool
    task: asyncio.Task[Any] | None


class Silence:
    """Silence of the engine `name`. `interrupt` ends the waits of tasks for a reason, `probe` returns whether a token was generated."""

    def __init__(
        self,
        name: str,
        interrupt: Callable[[Collection[asyncio.Task[Any]], str], None],
        probe: Callable[[], Awaitable[bool]],
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._name, self._interrupt, self._probe, self._clock = name, interrupt, probe, clock
        self._requests: dict[str, WaitingRequest] = {}
        self._data_s = clock()
        self._is_reported = self._is_suspect = False
        self._probing: asyncio.Task[bool] | None = None

    def begin(self, engine_id: str, request: GenerateRequest) -> None:
        """Count a request that is sent to the engine."""
        length, may_move = len(request.prompt), len(request.used_engines) <= 1
        self._requests[engine_id] = WaitingRequest(self._clock(), length, may_move, asyncio.current_task())

    def note_data(self, engine_id: str) -> None:
        """Note data for a request, which ends the silence."""
        request = self._requests[engine_id]
        request.prompt_tokens, request.task = 0, asyncio.current_task()
        if self._is_reported or self._is_suspect:
            logger.info("engine %s sends tokens again, after %.0f s", self._name, self._clock() - self._data_s)
            self._is_reported = self._is_suspect = False
        self._data_s = self._clock()

    def end(self, engine_id: str) -> None:
        """Forget a request that has ended."""
        self._requests.pop(engine_id, None)
        self._is_reported = self._is_reported and bool(self._requests)

    @property
    def is_too_long(self) -> bool:
        """Check whether requests that another engine can take over have waited for too long."""
        return self._exceeds([request for request in self._requests.values() if request.may_move])

    def report(self) -> None:
        """Log a silence that is too long, once."""
        if not self._is_reported and self._exceeds(self._requests.values()):
            self._is_reported = True
            logger.warning("engine %s %s", self._name, self._reason)

    def move_requests(self) -> None:
        """End the waits of the requests that another engine can take over. The engine is out unless it generates a token then."""
        self.report()
        self._is_suspect = True
        tasks = [request.task for request in self._requests.values() if request.may_move and request.task is not None]
        self._interrupt(tasks, self._reason)

    async def has_ended(self) -> bool:
        """Return False if requests were moved, and the engine has generated no token since. Concurrent callers share a probe."""
        if not self._is_suspect:
            return True
        if self._probing is None or self._probing.done():
            self._probing = asyncio.ensure_future(self._probe())
        with suppress(EngineUnavailable):  # The client was closed meanwhile.
            self._is_suspect = not await asyncio.shield(self._probing)
        return not self._is_suspect

    def stop(self) -> None:
        """Give up a probe that waits."""
        if self._probing is not None:
            self._probing.cancel()

    @property
    def _reason(self) -> str:
        silent_s = self._clock() - max(self._data_s, min((one.began_s for one in self._requests.values()), default=0.0))
        waiting = f"{len(self._requests)} request{'s' * (len(self._requests) != 1)}"
        return f"answers health checks and has sent nothing for {silent_s:.0f} s, while {waiting} waited"

    def _exceeds(self, requests: Collection[WaitingRequest]) -> bool:
        now_s = self._clock()
        if not requests or now_s - self._data_s < SILENCE_S:
            return False
        prompt_tokens = sum(request.prompt_tokens for request in self._requests.values())
        since_s = max(self._data_s, min(request.began_s for request in requests))
        return now_s - since_s >= SILENCE_S + prompt_tokens / MIN_PROMPT_TOKENS_PER_S


async def generates_token(client: httpx2.AsyncClient, path: str, content: bytes, headers: Mapping[str, str]) -> bool:
    """Return whether the server answers a request for one token within PROBE_S. A refusal is an answer."""
    try:
        async with asyncio.timeout(PROBE_S):
            answer = await client.post(path, content=content, headers=headers)
    except (httpx2.HTTPError, RuntimeError, TimeoutError):  # RuntimeError: the client was closed meanwhile.
        return False
    return answer.status_code < 500 or answer.status_code in OVERLOADED
