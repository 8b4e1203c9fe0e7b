"""Turns for constraints that an engine has not compiled yet: one at a time, projects in turn.

vLLM compiles constraints in the order of its requests, on few threads. A project that sends many new schemas would keep the
first schema of another project waiting for all of them.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from responses_app.engine_interface import Chunk, Constraint, GenerateRequest

# The engine says nothing when it has compiled a constraint. Its first token comes later, where other requests go first.
TURN_LIMIT_S = 6.0
MOST_KNOWN = 1024


class Turns:
    """The turns of one engine."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._is_taken = False

    async def generate(
        self, request: GenerateRequest, start: Callable[[GenerateRequest], AsyncGenerator[Chunk, None]]
    ) -> AsyncGenerator[Chunk, None]:
        """What `start` generates. It is called when the constraint is known or its turn has come, which ends with the first chunk."""
        # In a thread, as a constraint may have half a million characters.
        key = await asyncio.to_thread(_key, request.constraint) if request.constraint else None
        if key is None or self._is_known(key):
            release = _nothing
        else:
            await self._take(request.owner)
            release = self._releaser(key)
        try:
            async with aclosing(start(request)) as chunks:
                async for chunk in chunks:
                    release()
                    yield chunk
        finally:
            release()

    def _is_known(self, key: bytes) -> bool:
        if key in self._known:
            self._known.move_to_end(key)
        return key in self._known

    async def _take(self, owner: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    def _releaser(self, key: bytes) -> Callable[[], None]:
        """A function that ends the turn when it is called for the first time, or after TURN_LIMIT_S."""
        ended = False

        def release() -> None:
            nonlocal ended
            if not ended:
                ended = True
                timer.cancel()
                self._known[key] = None
                while len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
                self._pass_on()

        timer = asyncio.get_running_loop().call_later(TURN_LIMIT_S, release)
        return release

    def _pass_on(self) -> None:
        """Give the turn to the first request of the next owner."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns  # At the end: the other owners come first.
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False


def _key(constraint: Constraint) -> bytes:
    """A hash of a constraint, by which equal ones are recognised."""
    value = constraint.value if isinstance(constraint.value, str) else json.dumps(constraint.value)
    return hashlib.sha256(f"{constraint.kind} {value}".encode("utf-8", "surrogatepass")).digest()


def _nothing() -> None:
    pass
