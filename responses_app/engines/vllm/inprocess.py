"""vLLM inside the server's process: its core runs in child processes, tokens come over its own sockets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, contextmanager, suppress
from typing import Any

from responses_app.engine_interface import (
    Chunk,
    Constraint,
    EngineUnavailable,
    GenerateRequest,
    RequestRejected,
    Sampling,
    read,
)
from responses_app.engines.vllm.args import InvalidEngineOption
from responses_app.engines.vllm.compile_queue import Turns
from responses_app.engines.vllm.outputs import chunk
from responses_app.engines.vllm.params import sampling_fields, structured_fields
from responses_app.engines.vllm.startup import VllmStartup

logger = logging.getLogger(__name__)

WATCH_S = 0.25  # How often the watcher looks whether the core still lives.
RESTART_PAUSES_S = (0.5, 1, 2, 5, 10, 30)  # Between attempts to bring a dead core back; the last one repeats.

# For the core to end before vLLM kills its process tree. On a CPU it always comes to that, as the worker minds neither its
# closed pipe nor SIGTERM and the core would wait 9 s for it; and there is nothing left in it worth waiting for.
CLOSE_S = 2.0


class InProcessVllm:
    """The `vllm:` engine. `options` are fields of vLLM's AsyncEngineArgs as text, converted as `vllm serve` would.

    If the core dies, running requests get EngineDown, and it is started again in the background until `close`.
    """

    measures = True
    has_xgrammar = True

    def __init__(self, model: str, options: Mapping[str, str] | None = None) -> None:
        self.model = model
        self._options = dict(options or {})
        self._llm: Any = None
        self._watcher: asyncio.Task[None] | None = None
        self._loading: VllmStartup | None = None
        self._running: set[str] = set()
        self._turns = Turns()

    @property
    def max_model_len(self) -> int:
        return int(self._core().model_config.max_model_len)

    @property
    def sees(self) -> bool:
        """What vLLM says of the model, and of the limits that it was given."""
        processor = self._core().renderer.mm_processor
        return processor is not None and processor.info.allowed_mm_limits.get("image", 0) > 0

    async def start(self) -> None:
        """Load the model, 15 s and more. Raises ValueError for options that vLLM does not know, EngineDown if it does not come up."""
        self._llm = await self._load()
        self._watcher = asyncio.create_task(self._watch(), name="vllm watcher")

    def check_constraint(self, constraint: Constraint) -> None:
        """See `Engine.check`."""
        from vllm.sampling_params import check_json_nesting
        from vllm.v1.structured_output.backend_xgrammar import has_xgrammar_unsupported_json_features

        try:
            if constraint.kind in ("json", "structural_tag"):
                check_json_nesting(constraint.value, structural_tag=constraint.kind == "structural_tag")
            if constraint.kind == "json" and has_xgrammar_unsupported_json_features(constraint.value):
                raise RequestRejected("The provided JSON schema contains features not supported by xgrammar.")
        except ValueError as error:
            raise RequestRejected(str(error)) from error

    async def count_tokens(self, prompt: Sequence[int], images: Sequence[bytes]) -> int:
        """See `Engine.measure`. vLLM's own processor says it, as it will when the images are to be generated from."""
        from vllm.renderers import TokenizeParams

        renderer, unlimited = self._core().renderer, TokenizeParams(max_total_tokens=None)
        with _map_errors(images, lambda: True):
            given = await _tokens_prompt(prompt, images)
            # Not through the cache that the core has a copy of: what it is not sent it must not be thought to have.
            (found,) = await renderer.render_cmpl_async([given], unlimited, skip_mm_cache=True)
        return len(found["prompt_token_ids"])

    async def prefill(self, request: GenerateRequest) -> None:
        """See `Engine.warm`."""
        await read(self, request)

    async def is_healthy(self) -> bool:
        return self._llm is not None and not self._llm.errored

    async def close(self) -> None:
        """End running requests with `abort`, then the core with all its processes; a start that is under way is given up."""
        if self._watcher:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
            self._watcher = None
        loading, self._loading = self._loading, None
        if loading:
            self._llm = await loading.end()
        await self._unload()

    def running(self) -> int:
        """How many requests the engine works on, as vLLM counts them."""
        return int(self._llm.get_num_unfinished_requests()) if self._llm else 0

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """See `Engine.generate`. A second request under a running id raises BadPrompt."""
        return self._turns.generate(request, self._generate)

    async def _generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        llm = self._core()
        if request.id in self._running:
            raise RequestRejected(f"a request {request.id} is running already")
        self._running.add(request.id)
        fresh = True
        try:
            with _map_errors(request.images, lambda: fresh):
                stream = llm.generate(
                    await _prompt(request),
                    _params(request),
                    request.id,
                    priority=request.priority,
                    reasoning_ended=True,  # A constraint holds from the first token, whatever parser vLLM may be given.
                )
                async with aclosing(stream):
                    async for output in stream:
                        _check(output, request, fresh)
                        told = chunk(output, request.sampling.logprobs, fresh)
                        fresh = False
                        yield told
        finally:
            self._running.discard(request.id)

    def _core(self) -> Any:
        if self._llm is None or self._llm.errored:
            raise EngineUnavailable("the vLLM core is not running")
        return self._llm

    async def _load(self) -> Any:
        self._loading = VllmStartup(self.model, self._options)
        try:
            llm = await self._loading.llm()
        except (InvalidEngineOption, EngineUnavailable):
            raise
        except Exception as error:
            raise EngineUnavailable(f"vLLM does not start: {error}") from error
        self._loading = None
        await _warm_up(llm)
        return llm

    async def _unload(self) -> None:
        llm, self._llm = self._llm, None
        if llm is None:
            return
        if not llm.errored:
            await llm.abort(list(self._running))
        with _quiet():
            await asyncio.to_thread(llm.shutdown, timeout=CLOSE_S)
        await _close_zmq(llm)
        # Its finaliser does it again, and fails noisily if that is at the end of the interpreter.
        llm.shutdown = _nothing

    async def _watch(self) -> None:
        """Bring the core back whenever it has died (decision F2 waits for that)."""
        while True:
            await asyncio.sleep(WATCH_S)
            if self._llm is None or self._llm.errored:
                logger.error("the vLLM core has died, it is started again")
                await self._unload()
                await self._restart()

    async def _restart(self) -> None:
        attempt = 0
        while self._llm is None:
            await asyncio.sleep(RESTART_PAUSES_S[min(attempt, len(RESTART_PAUSES_S) - 1)])
            attempt += 1
            try:
                self._llm = await self._load()
            except (EngineUnavailable, ValueError):
                logger.exception("attempt %d to start the vLLM core has failed", attempt)


async def _close_zmq(llm: Any) -> None:
    """vLLM closes its sockets but leaves their context, with its two threads, to the garbage collector, which complains."""
    await asyncio.sleep(0)  # The sockets are closed by a callback that vLLM has put on this loop.
    with suppress(AttributeError):
        llm.engine_core.resources.ctx.destroy(linger=0)


async def _warm_up(llm: Any) -> None:
    """Generate one token with log-probabilities, for which vLLM compiles code on a GPU: no request is to wait for that.

    A core that dies of it is seen by the watcher.
    """
    from vllm.exceptions import VLLMError

    request = GenerateRequest("warm-up", [0], Sampling(max_tokens=1, logprobs=1))
    with suppress(VLLMError):
        async for _ in llm.generate(await _prompt(request), _params(request), request.id):
            pass


def _nothing() -> None:
    pass


@contextmanager
def _quiet() -> Iterator[None]:
    """Without vLLM's warnings that it has to kill what does not end."""
    vllm = logging.getLogger("vllm")
    level = vllm.level
    vllm.setLevel(logging.ERROR)
    try:
        yield
    finally:
        vllm.setLevel(level)


@contextmanager
def _map_errors(images: Sequence[bytes], fresh: Callable[[], bool]) -> Iterator[None]:
    """vLLM's exceptions as those of the border.

    A ValueError before the first token is the request's fault, as is an AssertionError where images are placed.
    """
    from vllm.exceptions import VLLMClientError, VLLMError

    try:
        yield
    except VLLMClientError as error:
        raise RequestRejected(str(error)) from error
    except (VLLMError, ValueError, TypeError, AssertionError) as error:
        cause = error.__cause__ or error
        if fresh() and isinstance(cause, (ValueError, TypeError, *([AssertionError] if images else []))):
            raise RequestRejected(str(cause)) from error
        raise EngineUnavailable(f"vLLM has failed: {cause!r}") from error


def _check(output: Any, request: GenerateRequest, fresh: bool) -> None:
    """vLLM ends a request with `error` when it lost its state, or when a grammar that it had accepted did not compile."""
    if output.outputs[0].finish_reason == "error":
        if fresh and request.constraint:
            raise RequestRejected(f"the {request.constraint.kind} constraint cannot be compiled")
        raise EngineUnavailable(f"vLLM gave up on {request.id}")


async def _prompt(request: GenerateRequest) -> Any:
    """What vLLM takes as prompt.

    A bare one is validated here and now. One with images or a constraint goes the long way through vLLM's thread pool, as
    decoding pictures and compiling grammars may take longer than an event loop should stand still.
    """
    from vllm.inputs import tokens_input

    if not request.images and not request.constraint:
        return tokens_input(list(request.prompt), cache_salt=request.cache_salt)
    prompt = await _tokens_prompt(request.prompt, request.images)
    if request.cache_salt is not None:
        prompt["cache_salt"] = request.cache_salt
    return prompt


async def _tokens_prompt(tokens: Sequence[int], images: Sequence[bytes]) -> Any:
    from vllm.inputs import TokensPrompt

    prompt = TokensPrompt(prompt_token_ids=list(tokens))
    if images:
        prompt["multi_modal_data"] = {"image": await asyncio.get_running_loop().run_in_executor(_DECODERS, _decode, images)}
    return prompt


# Threads of their own: the default ones render the prompts of everybody.
_DECODERS = ThreadPoolExecutor(2, "images")


def _decode(images: Sequence[bytes]) -> list[Any]:
    return [_picture(data, at) for at, data in enumerate(images)]


def _picture(data: bytes, at: int) -> Any:
    """As vLLM's own server reads it: turned as the camera was held, on white where it is transparent."""
    from vllm.multimodal.media.image import ImageMediaIO

    try:
        return ImageMediaIO().load_bytes(data)
    except Exception as error:  # Pillow's decoders raise whatever they like, some of it derived from Exception alone.
        raise RequestRejected(f"image {at} cannot be decoded ({type(error).__name__})") from error


def _params(request: GenerateRequest) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    return SamplingParams(
        **sampling_fields(request.sampling),
        structured_outputs=StructuredOutputsParams(**structured_fields(request.constraint)) if request.constraint else None,
        output_kind=RequestOutputKind.DELTA,
    )
