"""HTTP client engine: a `vllm serve` process elsewhere, driven by token ids."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from time import monotonic

import httpx2

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineLacksModel,
    EngineOverloaded,
    EngineUnavailable,
    EngineUnreachable,
    GenerateRequest,
    RequestRejected,
    Sampling,
    prefill_by_generating,
)
from responses_app.engines.http import codec
from responses_app.engines.http.connections import ABORT, ABORT_S, CONNECT_S, abort, connect, map_errors
from responses_app.engines.http.health import HealthMonitor
from responses_app.engines.http.silence import Silence, generates_token
from responses_app.engines.refusal import Refusal
from responses_app.engines.urls import without_version
from responses_app.engines.vllm.compile_queue import CompileQueue

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 1024  # Maximum connections, one per running request. Requests beyond the limit wait for up to POOL_WAIT_S.
HEALTH_TIMEOUT_S = 2.0  # Timeout of a health check.
RETRY_S = 0.25  # Pause between attempts to reach a starting server.
MAX_CONTROL_CONNECTIONS = 8  # Maximum connections for health checks and aborts, which must not wait for running requests.
KEY_REFUSED = frozenset({401, 403})
WRONG_KEY = "the engine refuses the key (HTTP {}): write its key as http://:KEY@host:port"

GENERATE, MODELS, HEALTH = "/inference/v1/generate", "/v1/models", "/health"


class HttpVllm:
    """The `http:` engine: any `vllm serve --enable-scale-out` (0.32 or later), alone or behind a router.

    `model` is a served model name, by default the first one. After `start`, `root` is the path or hub name of the model files.
    `priorities` means that the server runs with `--scheduling-policy priority`; without this option vLLM rejects requests with
    a priority. `session_header` is the header in which a router finds the session of a request.

    `start` waits up to `start_wait` seconds for the server. It then continues without the server if `model` and `max_model_len`
    are given. A server that stops and comes back is used as before.
    """

    counts_cheaply = False
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
        session_header: str = codec.SESSION_HEADER,
    ) -> None:
        self.base = base
        self.model = model
        self.root: str | None = None
        # Whether the server has removed the model, or refused the key: a health check lists the models then.
        self.lacks_model = self._refuses_key = False
        self._key = key
        self._priorities = priorities
        self._max_model_len = max_model_len
        self._start_wait, self._session_header = start_wait, session_header
        self._client: httpx2.AsyncClient | None = None
        self._control: httpx2.AsyncClient | None = None
        self._health = HealthMonitor(self._check_health, lambda: self.silence.report())
        self.silence = Silence(base, self._health.interrupt, self._probe)
        self._refusal = Refusal()
        self._running: set[str] = set()
        self._compile_queue = CompileQueue()
        self._aborts: set[asyncio.Task[None]] = set()

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together. Raises EngineUnavailable before the first connection."""
        if self._max_model_len is None:
            raise EngineUnavailable(f"{self.base} is not connected yet")
        return self._max_model_len

    async def start(self) -> None:
        """Connect and read the served models. Raises EngineUnavailable without a matching server, model or endpoint."""
        self._client = self._client or connect(self.base, self._key, MAX_CONNECTIONS)
        self._control = self._control or connect(self.base, self._key, MAX_CONTROL_CONNECTIONS)
        try:
            await self._wait_for_server()
        except BaseException:
            await self.close()
            raise
        self._health.start()

    @property
    def supports_images(self) -> bool:
        """Always True: the server does not report image support, and the dialect reads the model files instead."""
        return True

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """Count the prompt tokens by a generation of a single token; vLLM has no endpoint for counting images."""
        if not images:
            return len(prompt)
        uid = uuid.uuid4().hex
        # The unique cache salt prevents this request from filling the prefix cache of the real one.
        asking = GenerateRequest(f"measure-{uid}", prompt, Sampling(max_tokens=1), images=images, cache_salt=uid)
        counts = [chunk.prompt async for chunk in self.generate(asking)]
        return counts[-1] or len(prompt)

    async def prefill(self, request: GenerateRequest) -> None:
        """Prefill by a generation of a single token."""
        await prefill_by_generating(self, request)

    def check_constraint(self, constraint: Constraint) -> None:
        """Accept every constraint; the server rejects invalid constraints with the first response."""

    async def is_healthy(self) -> bool:
        """Return True if the server answers health checks, and generates a token if requests were moved for its silence."""
        return self._client is not None and await self._health.is_healthy() and await self.silence.has_ended()

    @property
    def refusal_s(self) -> float:
        """Seconds until the end of the pause after the last refusal."""
        return self._refusal.left_s

    async def close(self) -> None:
        """Abort running requests on the server and close all connections."""
        client, self._client = self._client, None
        control, self._control = self._control, None
        if client is None or control is None:
            return
        if self._running:
            await abort(control, list(self._running))
        if self._aborts:
            await asyncio.wait(self._aborts, timeout=ABORT_S)
        await self._health.stop()
        self.silence.stop()
        await client.aclose()
        await control.aclose()

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`. `cached` comes with the last chunk."""
        return self._compile_queue.generate(request, self._generate)

    async def _generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        client, engine_id = self._open_client(), codec.engine_id(request)
        content = codec.encode_body(request, self.model, self._priorities)
        answer = codec.GenerateStreamParser(request)
        self._running.add(engine_id)
        self.silence.begin(engine_id, request)
        try:
            async with aclosing(self._parts(client, content, codec.headers(request, self._session_header))) as parts:
                async for data in parts:
                    self.silence.note_data(engine_id)
                    if chunk := answer.feed(data):
                        yield chunk
            last_chunk = answer.last_chunk()
            self._running.discard(engine_id)
            yield last_chunk
        except RequestRejected:
            self._running.discard(engine_id)
            raise
        except EngineOverloaded as error:
            self._running.discard(engine_id)
            await self._begin_refusal(error)
            raise
        except EngineLacksModel as error:
            self._running.discard(engine_id)
            self._health.record(False)
            self.lacks_model = True
            raise EngineLacksModel(f"{self.base} does not serve {self.model} any more: {error}") from error
        except EngineUnavailable:
            self._health.record(False)
            raise
        finally:
            self.silence.end(engine_id)
            # Closing the connection aborts the generation too, unless a proxy leaves the connection to the server open.
            if engine_id in self._running:
                self._running.discard(engine_id)
                self._spawn_abort(engine_id)

    async def _begin_refusal(self, error: EngineOverloaded) -> None:
        """Begin the pause after a refusal. Raises EngineUnavailable if a proxy has answered for an engine that is away."""
        self._health.record(False)
        if not await self._health.is_healthy():
            raise EngineUnavailable(str(error)) from error
        self._refusal.begin(error.retry_after_s)

    async def _parts(
        self, client: httpx2.AsyncClient, content: bytes, headers: Mapping[str, str]
    ) -> AsyncGenerator[bytes, None]:
        """Stream the response body in parts, as received. Raises RequestRejected, EngineUnavailable."""
        with map_errors(self.base):
            request = client.build_request("POST", GENERATE, content=content, headers=headers)
            response = await self._health.run_while_healthy(client.send(request, stream=True))
            try:
                if not response.is_success:
                    body = await self._health.run_while_healthy(response.aread())
                    self._check_key(response.status_code)
                    raise codec.error_for(response.status_code, body, response.headers.get("Retry-After"))
                pieces = response.aiter_raw()
                while (data := await self._health.run_while_healthy(anext(pieces, None))) is not None:
                    yield data
            finally:
                await response.aclose()

    def _check_key(self, status: int) -> None:
        """Raise EngineUnavailable, whose text clients may read, for a refused key. Health checks try the key from then on."""
        if status in KEY_REFUSED:
            self._refuses_key = True
            logger.error("%s: %s", self.base, WRONG_KEY.format(status))
            raise EngineUnavailable(f"the engine refuses the key of this server (HTTP {status})")

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            raise EngineUnavailable(f"{self.base} is not connected")
        return self._client

    async def _check_health(self) -> bool | None:
        """Return the result of a health check; None means no response within HEALTH_TIMEOUT_S."""
        if self._control is None:
            return False
        try:
            is_up = (await self._control.get(HEALTH, timeout=HEALTH_TIMEOUT_S)).is_success
            if is_up and (self.lacks_model or self._refuses_key):
                listed = await self._control.get(MODELS, timeout=HEALTH_TIMEOUT_S)
                self._refuses_key = listed.status_code in KEY_REFUSED
                self.lacks_model = not any(card["id"] == self.model for card in codec.parse_models(listed.content))
            return is_up and not self.lacks_model
        except httpx2.TimeoutException:
            return None
        except (httpx2.HTTPError, EngineUnavailable, RuntimeError):  # RuntimeError: the client was closed meanwhile.
            return False

    async def _probe(self) -> bool:
        uid = uuid.uuid4().hex
        request = GenerateRequest(f"probe-{uid}", [0], Sampling(max_tokens=1), cache_salt=uid)
        content = codec.encode_body(request, self.model, self._priorities)
        answers = await generates_token(self._open_client(), GENERATE, content, codec.headers(request, self._session_header))
        if not answers:
            self._spawn_abort(codec.engine_id(request))
        return answers

    async def _wait_for_server(self) -> None:
        """Retry `_connect_model` until success, or until `start_wait` has passed."""
        deadline = monotonic() + self._start_wait
        while True:
            try:
                return await self._connect_model()
            except EngineUnreachable as error:
                if monotonic() >= deadline:
                    if self.model is None or self._max_model_len is None:
                        raise
                    return logger.warning("started without its engine: %s", error)
            await asyncio.sleep(RETRY_S)

    async def _connect_model(self) -> None:
        """Choose the model. Check with an empty abort request that the server has the token endpoints."""
        assert self._control is not None  # noqa: S101 - start
        with map_errors(self.base):
            listed = await self._control.get(MODELS, timeout=CONNECT_S)
            aborted = await self._control.post(ABORT, json={"request_ids": []}, timeout=CONNECT_S)
        if not listed.is_success:
            if listed.status_code in KEY_REFUSED:
                raise EngineUnavailable(f"{self.base}: {WRONG_KEY.format(listed.status_code)}")
            refused = codec.error_for(listed.status_code, listed.content)
            if listed.status_code == 404 and (base := without_version(self.base)):
                raise EngineUnavailable(f"{self.base} lists no models (HTTP 404): give its URL without /v1, as in {base}")
            raise EngineUnreachable(*refused.args) if listed.status_code >= 500 else refused
        if not aborted.is_success:
            raise EngineUnavailable(
                f"{self.base} has no {ABORT} (HTTP {aborted.status_code}): start it with --enable-scale-out"
            )
        card = codec.find_model(listed.content, self.model, self.base)
        self.model, self.root = card["id"], card.get("root")
        self._max_model_len = self._max_model_len or card.get("max_model_len")
        if not self._max_model_len:
            raise EngineUnavailable(f"{self.base} does not report max_model_len: add it to the engine URL")

    def _spawn_abort(self, request_id: str) -> None:
        """Abort in a separate task: the closing caller may be cancelled and must not wait."""
        if self._control is None:
            return
        task = asyncio.create_task(abort(self._control, [request_id]), name=f"abort {request_id}")
        self._aborts.add(task)
        task.add_done_callback(self._aborts.discard)
