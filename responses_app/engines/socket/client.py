"""Socket engine: an engine worker of this machine, driven by token ids over one connection for all streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineError,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    Sampling,
    prefill_by_generating,
)
from responses_app.engines.socket import codec
from responses_app.engines.socket.connection import EngineConnection
from responses_app.engines.token_joiner import TokenJoiner
from responses_app.utils.backoff import Backoff
from responses_app.utils.unix_socket import connectable

logger = logging.getLogger(__name__)

CONNECT_S = 5.0  # Maximum time until the worker has described its model.
# Pauses between attempts to connect again.
PAUSES_S = (0.05, 0.1, 0.25, 0.5)
WATCH_S = 1.0
# A worker that does not answer for so long, while streams wait, counts as dead.
HUNG_S = 15.0
# A health check pings a worker that was silent for WATCH_S, and waits so long: less than the limit of /health/ready.
ANSWER_S = 3.0


class SocketEngine:
    """The `unix:` engine: the worker of `bin/serve --worker`, at the socket `path`.

    `start` waits up to `start_wait` seconds for the worker. It then continues without the worker if `max_model_len` is given. A worker
    that ends and comes back is used as before. `watch_s` and `hung_s` are the limits of `EngineConnection.check`,
    `answer_s` that of a health check.
    """

    counts_cheaply = True
    # The worker is a program of this installation, and compiles with the same xgrammar.
    has_xgrammar = find_spec("xgrammar") is not None
    refusal_s = 0.0

    def __init__(
        self,
        path: str,
        *,
        max_model_len: int | None = None,
        start_wait: float = 0.0,
        watch_s: float = WATCH_S,
        hung_s: float = HUNG_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self.path = path
        self._watch_s, self._hung_s, self._answer_s = watch_s, hung_s, answer_s
        self._address = connectable(path)
        self._max_model_len, self._start_wait = max_model_len, start_wait
        self._supports_images = True
        self._connection: EngineConnection | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._joiner = TokenJoiner()

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together. Raises EngineUnavailable before the first connection."""
        if self._max_model_len is None:
            raise EngineUnavailable(f"{self.path} is not connected yet")
        return self._max_model_len

    @property
    def supports_images(self) -> bool:
        """True if the model of the worker accepts images, or is not known yet."""
        return self._supports_images

    async def start(self) -> None:
        """Connect to the worker. Raises EngineUnreachable without a worker."""
        deadline, backoff = monotonic() + self._start_wait, Backoff(PAUSES_S)
        while True:
            try:
                await self.connect()
                break
            except EngineUnreachable as error:
                if monotonic() >= deadline:
                    if self._max_model_len is None:
                        raise
                    logger.warning("started without its engine: %s", error)
                    break
            await asyncio.sleep(backoff.next_pause_s())
        self._keeper = asyncio.create_task(self._keep(), name="engine connection")

    async def close(self) -> None:
        """Close the connection, which aborts all requests."""
        keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def is_healthy(self) -> bool:
        """Return True while the worker is connected and answers. A ping needs no model, so a check costs no tokens."""
        return self._connection is not None and await self._connection.answers(self._watch_s, self._answer_s)

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens in the worker, images expanded as in a generation."""
        if not images:
            return len(prompt)
        stream = self._open_connection().begin(codec.COUNT, GenerateRequest("count", prompt, Sampling(1), images=images))
        try:
            return await stream.count()
        finally:
            stream.end()

    async def prefill(self, request: GenerateRequest) -> None:
        """Prefill by a generation of a single token."""
        await prefill_by_generating(self, request)

    def check_constraint(self, constraint: Constraint) -> None:
        """Accept every constraint; the worker rejects invalid constraints before the first chunk."""

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`. The worker compiles new constraints of all web processes in turn."""
        stream = self._open_connection().begin(codec.GENERATE, request)
        try:
            while True:
                chunk = await stream.chunk()
                yield chunk
                if chunk.finish is not None:
                    return
                if request.may_join:
                    await self._joiner.wait()
        finally:
            stream.end()

    def _open_connection(self) -> EngineConnection:
        if self._connection is None or not self._connection.is_open:
            raise EngineUnreachable(f"the engine worker at {self.path} is not connected")
        return self._connection

    async def connect(self) -> None:
        """Connect, and read the facts of the model. Raises EngineUnreachable."""
        loop, connection = asyncio.get_running_loop(), None
        try:
            async with asyncio.timeout(CONNECT_S):
                _, connection = await loop.create_unix_connection(EngineConnection, self._address)
                facts = await connection.described
        except (OSError, TimeoutError, EngineError) as error:
            raise EngineUnreachable(f"no engine worker answers at {self.path} ({type(error).__name__})") from error
        else:
            self._max_model_len = int(facts["max_model_len"])
            self._supports_images = bool(facts["supports_images"])
            self._connection = connection
        finally:
            if connection is not None and connection is not self._connection:
                await connection.close()

    async def _keep(self) -> None:
        """Connect again after the end of a connection, and end connections to a worker that hangs."""
        backoff = Backoff(PAUSES_S)
        while True:
            if self._connection is not None and self._connection.is_open:
                backoff.reset()
                await self._connection.wait_closed(self._watch_s)
                self._connection.check(self._watch_s, self._hung_s)
                continue
            try:
                await self.connect()
            except EngineUnreachable:
                await asyncio.sleep(backoff.next_pause_s())
            except Exception:
                logger.exception("the engine worker at %s cannot be used", self.path)
                await asyncio.sleep(backoff.next_pause_s())


async def health(path: Path, limit_s: float) -> bool | None:
    """Return whether the engine of a worker is healthy; None if no worker describes its model within `limit_s` seconds."""
    engine = SocketEngine(str(path), watch_s=0.0)
    try:
        async with asyncio.timeout(limit_s):
            await engine.connect()
            return await engine.is_healthy()
    except (EngineUnavailable, TimeoutError):
        return None
    finally:
        await engine.close()
