"""Compile queue: the engine gets a single new constraint at a time, projects in turn.

vLLM compiles constraints in request order, on few threads. Without the queue a project with many new schemas would delay the
first schema of every other project.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from responses_app.engine_interface import Chunk, Constraint, GenerateRequest

# Time limit of a turn. vLLM does not report when a constraint is compiled, and the first token may come much later because of
# other requests.
TURN_LIMIT_S = 6.0
MAX_KNOWN = 1024


class CompileQueue:
    """Compile queue of an engine."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._is_taken = False

    async def generate(
        self, request: GenerateRequest, start: Callable[[GenerateRequest], AsyncGenerator[Chunk, None]]
    ) -> AsyncGenerator[Chunk, None]:
        """Generate with `start`: at once for a known constraint, else after waiting for a turn.

        The turn ends with the first chunk.
        """
        # In a thread: a constraint may have half a million characters.
        key = await asyncio.to_thread(_key, request.constraint) if request.constraint else None
        if key is None or self._is_known(key):
            release = _do_nothing
        else:
            await self._wait_for_turn(request.owner)
            release = self._make_release(key)
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

    async def _wait_for_turn(self, owner: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._start_next_turn()
            raise

    def _make_release(self, key: bytes) -> Callable[[], None]:
        """Return a function to end the turn. Only the first call counts; after TURN_LIMIT_S the turn ends by itself."""
        ended = False

        def release() -> None:
            nonlocal ended
            if not ended:
                ended = True
                timer.cancel()
                self._known[key] = None
                while len(self._known) > MAX_KNOWN:
                    self._known.popitem(last=False)
                self._start_next_turn()

        timer = asyncio.get_running_loop().call_later(TURN_LIMIT_S, release)
        return release

    def _start_next_turn(self) -> None:
        """Give the turn to the first request of the next owner."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns  # At the end, behind the other owners.
            if not turn.done():
                turn.set_result(None)
                return
        self._is_taken = False


def _key(constraint: Constraint) -> bytes:
    """Hash the constraint; equal constraints have equal keys."""
    value = constraint.value if isinstance(constraint.value, str) else json.dumps(constraint.value)
    return hashlib.sha256(f"{constraint.kind} {value}".encode("utf-8", "surrogatepass")).digest()


def _do_nothing() -> None:
    pass
