"""A `vllm serve` somewhere else, spoken to in token ids over HTTP."""

from __future__ import annotations

import asyncio
import logging
import socket
import uuid
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from time import monotonic

import httpx2

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineUnavailable,
    GenerateRequest,
    RequestRejected,
    Sampling,
    read,
)
from responses_app.engines.http import codec
from responses_app.engines.http.health import HealthMonitor
from responses_app.engines.vllm.compile_queue import Turns

logger = logging.getLogger(__name__)

POOL = 1024  # Connections, one per running request. What is beyond waits for POOL_S.
POOL_S = 30.0
CONNECT_S = 5.0
WRITE_S = 30.0
SILENCE_S = 600.0  # Between two chunks: a long prompt behind a long queue is silent for minutes.
ALIVE_S = 2.0  # A health check that takes longer is none.
RETRY_S = 0.25  # Between two attempts to reach a server that is expected to come up.
CONTROL = 8  # Connections for health checks and aborts: they must not wait for those of running requests.
ABORT_S = 5.0
IDLE_S = 4.0  # Below the 5 s after which vLLM's server closes an idle connection, maybe just as we write to it.

# A host that vanished without a word is found out after 10 + 3 * 5 s, long before SILENCE_S.
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
]

GENERATE, ABORT, MODELS, HEALTH = "/inference/v1/generate", "/inference/v1/abort_requests", "/v1/models", "/health"


class EngineUnreachable(EngineUnavailable):
    """There is no such server now; there may be one in a moment."""


class HttpVllm:
    """The `http:` engine: any `vllm serve --enable-scale-out` (0.32 or later), alone or behind a router.

    `model` is one of the served names, by default the first; after `start` also `root`, the path or hub name of its files.
    `priorities` says that the server runs with `--scheduling-policy priority`: without, it refuses requests that have one.
    `start` waits up to `start_wait` seconds for a server that is not there yet, and goes on without it if `model` and
    `max_model_len` were given. One that dies and comes back later is used as before.
    """

    measures = False
    has_xgrammar = False

    def __init__(
        self,
        base: str,
        model: str | None = None,
        key: str | None = None,
        *,
        max_model_len: int | None = None,
        priorities: bool = False,
        start_wait: float = 0.0,
    ) -> None:
        self.base = base
        self.model = model
        self.root: str | None = None
        self._key = key
        self._priorities = priorities
        self._max_model_len = max_model_len
        self._start_wait = start_wait
        self._client: httpx2.AsyncClient | None = None
        self._control: httpx2.AsyncClient | None = None
        self._pulse = HealthMonitor(self._ask)
        self._running: set[str] = set()
        self._turns = Turns()
        self._aborts: set[asyncio.Task[None]] = set()

    @property
    def max_model_len(self) -> int:
        if self._max_model_len is None:
            raise EngineUnavailable(f"{self.base} is not connected yet")
        return self._max_model_len

    async def start(self) -> None:
        """Connect, and see what is served. Raises EngineDown if there is no such server, model or endpoint."""
        self._client = self._client or self._connect(POOL)
        self._control = self._control or self._connect(CONTROL)
        try:
            await self._find()
        except BaseException:
            await self.close()
            raise
        self._pulse.start()

    @property
    def sees(self) -> bool:
        """The server does not say; what the files of the model say is for the dialect to read."""
        return True

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """See `Engine.measure`. The server has no endpoint for it, so it is asked for one token."""
        if not images:
            return len(prompt)
        uid = uuid.uuid4().hex
        # Salted, so that what is generated afterwards does not call the whole prompt cached.
        asking = GenerateRequest(f"measure-{uid}", prompt, Sampling(max_tokens=1), images=images, cache_salt=uid)
        counts = [chunk.prompt async for chunk in self.generate(asking)]
        return counts[-1] or len(prompt)

    async def prefill(self, request: GenerateRequest) -> None:
        """See `Engine.warm`."""
        await read(self, request)

    def check_constraint(self, constraint: Constraint) -> None:
        """Left to the server, which refuses with the first answer: its grammar compiler may not be installed here."""

    async def is_healthy(self) -> bool:
        return self._client is not None and await self._pulse.is_healthy()

    async def close(self) -> None:
        """Abort what still runs on the server, and hang up."""
        client, self._client = self._client, None
        control, self._control = self._control, None
        if client is None or control is None:
            return
        if self._running:
            await _abort(control, list(self._running))
        if self._aborts:
            await asyncio.wait(self._aborts, timeout=ABORT_S)
        await self._pulse.stop()
        await client.aclose()
        await control.aclose()

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`. `cached` comes with the last chunk."""
        return self._turns.generate(request, self._generate)

    async def _generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        client = self._open()
        content = codec.body(request, self.model, self._priorities)
        answer = codec.GenerateStreamParser(request)
        self._running.add(request.id)
        try:
            async with aclosing(self._parts(client, content)) as parts:
                async for data in parts:
                    if chunk := answer.feed(data):
                        yield chunk
            last = answer.last()
            self._running.discard(request.id)
            yield last
        except RequestRejected:
            self._running.discard(request.id)
            raise
        except EngineUnavailable:
            self._pulse.record(False)
            raise
        finally:
            # Hanging up ends the generation too, unless something in between keeps the connection open.
            if request.id in self._running:
                self._running.discard(request.id)
                self._spawn_abort(request.id)

    async def _parts(self, client: httpx2.AsyncClient, content: bytes) -> AsyncGenerator[bytes, None]:
        """The answer to a generation, in pieces as they come. Raises BadPrompt, EngineDown."""
        with _map_errors(self.base):
            asked = client.build_request("POST", GENERATE, content=content)
            response = await self._pulse.run_while_healthy(client.send(asked, stream=True))
            try:
                if not response.is_success:
                    raise codec.error_for(response.status_code, await self._pulse.run_while_healthy(response.aread()))
                pieces = response.aiter_raw()
                while (data := await self._pulse.run_while_healthy(anext(pieces, None))) is not None:
                    yield data
            finally:
                await response.aclose()

    def _open(self) -> httpx2.AsyncClient:
        if self._client is None:
            raise EngineUnavailable(f"{self.base} is not connected")
        return self._client

    def _connect(self, connections: int) -> httpx2.AsyncClient:
        limits = httpx2.Limits(max_connections=connections, max_keepalive_connections=connections, keepalive_expiry=IDLE_S)
        # Not compressed: the stream is read as it comes.
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"} | (
            {"Authorization": f"Bearer {self._key}"} if self._key else {}
        )
        return httpx2.AsyncClient(
            base_url=self.base,
            headers=headers,
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S, write=WRITE_S, pool=POOL_S),
            transport=httpx2.AsyncHTTPTransport(limits=limits, socket_options=KEEPALIVE, retries=1),
        )

    async def _ask(self) -> bool | None:
        """Whether the server says that it is well; None if it does not say anything in time."""
        if self._control is None:
            return False
        try:
            return (await self._control.get(HEALTH, timeout=ALIVE_S)).is_success
        except httpx2.TimeoutException:
            return None
        except (httpx2.HTTPError, RuntimeError):  # The latter from a client that was closed meanwhile.
            return False

    async def _find(self) -> None:
        """Look until it is there, or the time is over in which it should have come."""
        deadline = monotonic() + self._start_wait
        while True:
            try:
                return await self._look()
            except EngineUnreachable as error:
                if monotonic() >= deadline:
                    if self.model is None or self._max_model_len is None:
                        raise
                    return logger.warning("started without its engine: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _look(self) -> None:
        """Choose the model, and ask for the abort of nothing, which only a server with the token endpoints answers."""
        assert self._control is not None  # noqa: S101 - start
        with _map_errors(self.base):
            listed = await self._control.get(MODELS, timeout=CONNECT_S)
            aborted = await self._control.post(ABORT, json={"request_ids": []}, timeout=CONNECT_S)
        if not listed.is_success:
            refused = codec.error_for(listed.status_code, listed.content)
            raise EngineUnreachable(*refused.args) if listed.status_code >= 500 else refused
        if not aborted.is_success:
            raise EngineUnavailable(
                f"{self.base} has no {ABORT} (HTTP {aborted.status_code}): start it with --enable-scale-out"
            )
        cards = {card["id"]: card for card in codec.parse_models(listed.content)}
        self.model = self.model or next(iter(cards), None)
        if self.model not in cards:
            raise EngineUnavailable(f"{self.base} serves {', '.join(cards) or 'nothing'}, not {self.model}")
        card = cards[self.model]
        self.root = card.get("root")
        self._max_model_len = self._max_model_len or card.get("max_model_len")
        if not self._max_model_len:
            raise EngineUnavailable(f"{self.base} does not say max_model_len: add it to the engine URL")

    def _spawn_abort(self, request_id: str) -> None:
        """In a task of its own: whoever closes the generator may be cancelled and must not wait."""
        if self._control is None:
            return
        task = asyncio.create_task(_abort(self._control, [request_id]), name=f"abort {request_id}")
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)


async def _abort(client: httpx2.AsyncClient, request_ids: list[str]) -> None:
    ids = [codec.ENGINE_ID_PREFIX + request_id for request_id in request_ids]
    # A server that is away has aborted by itself; RuntimeError is a client that was closed meanwhile.
    with suppress(httpx2.HTTPError, RuntimeError):
        await client.post(ABORT, json={"request_ids": ids}, timeout=ABORT_S)


@contextmanager
def _map_errors(base: str) -> Iterator[None]:
    try:
        yield
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
        raise EngineUnreachable(f"{base}: {type(error).__name__} {error}".rstrip()) from error
