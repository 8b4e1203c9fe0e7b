"""vLLM engine in the server's process. The core runs in child processes, connected by vLLM's own sockets."""

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
    prefill_by_generating,
)
from responses_app.engines.adapters import adapter_options, split_adapters
from responses_app.engines.token_joiner import TokenJoiner
from responses_app.engines.vllm.args import InvalidEngineOption
from responses_app.engines.vllm.compile_queue import CompileQueue
from responses_app.engines.vllm.core_watch import CoreWatch, step_limit_s
from responses_app.engines.vllm.outputs import processed_chunks
from responses_app.engines.vllm.params import sampling_fields, structured_fields
from responses_app.engines.vllm.socket_folder import SocketFolder
from responses_app.engines.vllm.startup import VllmStartup
from responses_app.engines.vllm.token_streams import TokenStreams
from responses_app.utils.backoff import Backoff

logger = logging.getLogger(__name__)

WATCH_S = 0.25  # Interval between checks of the core.
RESTART_PAUSES_S = (0.5, 1, 2, 5, 10, 30)  # Pauses between attempts to restart a dead core.

# Time for the core to end before vLLM kills its process tree. On a CPU vLLM always kills it: the worker ignores its closed pipe
# and SIGTERM, and the core would wait 9 s for it without need.
CLOSE_S = 2.0


class InProcessVllm:
    """The `vllm:` engine. `options` are fields of vLLM's AsyncEngineArgs as text, converted as `vllm serve` does.

    If the core dies, running requests raise EngineUnavailable. The core is then restarted in the background until `close`.
    """

    counts_cheaply = True
    has_xgrammar = True
    refusal_s = 0.0

    def __init__(self, model: str, options: Mapping[str, str] | None = None) -> None:
        self.model = model
        plain, self._adapters = split_adapters(options or {})
        self._options = {**plain, **adapter_options(self._adapters, plain)}
        self._llm: Any = None
        self._token_streams: TokenStreams | None = None
        self._core_watch: CoreWatch | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._loading: VllmStartup | None = None
        self._running: set[str] = set()
        self._folder = SocketFolder()
        self._compile_queue = CompileQueue()
        self._joiner = TokenJoiner()

    @property
    def max_model_len(self) -> int:
        """Maximum number of tokens of prompt and output together. Raises EngineUnavailable while the core is down."""
        return int(self._core().model_config.max_model_len)

    @property
    def supports_images(self) -> bool:
        """True if vLLM accepts images for the model under the configured limits."""
        processor = self._core().renderer.mm_processor
        return processor is not None and processor.info.allowed_mm_limits.get("image", 0) > 0

    async def start(self) -> None:
        """Load the model, for 15 s or more. Raises ValueError for unknown options, EngineUnavailable if vLLM fails to start."""
        self._llm = await self._load()
        self._watcher = asyncio.create_task(self._watch(), name="vllm watcher")

    def check_constraint(self, constraint: Constraint) -> None:
        """Reject constraints with the checks of vLLM, see `Engine.check_constraint`."""
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
        """Count the prompt tokens with vLLM's own processor, images expanded as in a generation."""
        from vllm.renderers import TokenizeParams

        renderer, unlimited = self._core().renderer, TokenizeParams(max_total_tokens=None)
        with _map_errors(images, lambda: True):
            tokens_prompt = await _tokens_prompt(prompt, images)
            # Bypass the processor cache: the core has a copy, and must receive every image the cache believes it has.
            (rendered,) = await renderer.render_cmpl_async([tokens_prompt], unlimited, skip_mm_cache=True)
        return len(rendered["prompt_token_ids"])

    async def prefill(self, request: GenerateRequest) -> None:
        """Prefill by a generation of a single token."""
        await prefill_by_generating(self, request)

    async def is_healthy(self) -> bool:
        """Return True while the core runs and does not hang."""
        is_away = self._core_watch is None or self._core_watch.is_away
        return self._llm is not None and not self._llm.errored and not is_away

    async def close(self) -> None:
        """End running requests with `abort`, then the core and all child processes. Abandon a startup under way."""
        if self._watcher:
            self._watcher.cancel()
            with suppress(asyncio.CancelledError):
                await self._watcher
            self._watcher = None
        loading, self._loading = self._loading, None
        if loading:
            self._llm = await loading.end()
        await self._unload()
        self._folder.remove()

    def running(self) -> int:
        """Return the number of unfinished requests."""
        return int(self._llm.get_num_unfinished_requests()) + len(self._token_streams or ()) if self._llm else 0

    def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Generate chunks, see `Engine.generate`. A second request with a running id raises RequestRejected."""
        # Without a constraint no chunk passes the queue.
        return self._compile_queue.generate(request, self._generate) if request.constraint else self._generate(request)

    async def _generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        llm = self._core()
        if request.id in self._running:
            raise RequestRejected(f"a request {request.id} is running already")
        self._running.add(request.id)
        fresh = True
        try:
            with _map_errors(request.images, lambda: fresh):
                prompt, params, adapter = await _prompt(request), _params(request), self._adapter(request.lora)
                if self._token_streams is not None and self._token_streams.accepts(request):
                    stream = self._token_streams.generate(request, prompt, params, adapter)
                else:
                    stream = processed_chunks(llm, request, prompt, params, adapter)
                async with aclosing(stream):
                    async for some in stream:
                        fresh = False
                        yield some
                        if request.may_join:
                            await self._joiner.wait()
        finally:
            self._running.discard(request.id)

    def _core(self) -> Any:
        if self._llm is None or self._llm.errored:
            raise EngineUnavailable("the vLLM core is not running")
        return self._llm

    async def _load(self) -> Any:
        self._loading = VllmStartup(self.model, self._options, self._folder)
        try:
            llm = await self._loading.llm()
        except (InvalidEngineOption, EngineUnavailable):
            raise
        except Exception as error:
            raise EngineUnavailable(f"vLLM does not start: {error}") from error
        cores, self._loading = self._loading.cores, None
        # Before the first request: vLLM's output handler then waits for the next output already.
        self._token_streams = TokenStreams(llm)
        try:
            await self._load_adapters(llm)
            await _warm_up(llm)
        except Exception:
            self._llm = llm
            await self._unload()
            raise
        self._core_watch = CoreWatch(llm.engine_core.is_scheduler_paused_async, list(cores), step_limit_s())
        return llm

    async def _load_adapters(self, llm: Any) -> None:
        """Load all adapters at the start. Raises EngineUnavailable with the name of an adapter that does not fit the model."""
        for name, folder in self._adapters.items():
            try:
                await llm.add_lora(self._adapter(name))
            except Exception as error:
                raise EngineUnavailable(f"the LoRA adapter {name} in {folder} does not load: {error}") from error

    def _adapter(self, name: str) -> Any:
        """Return vLLM's object of an adapter, None for the base model. Raises RequestRejected for an unknown name."""
        if not name:
            return None
        if name not in self._adapters:
            raise RequestRejected(f"the engine has no LoRA adapter {name!r}")
        from vllm.lora.request import LoRARequest

        return LoRARequest(name, list(self._adapters).index(name) + 1, self._adapters[name])

    async def _unload(self) -> None:
        llm, self._llm = self._llm, None
        streams, self._token_streams = self._token_streams, None
        watch, self._core_watch = self._core_watch, None
        if watch is not None:
            watch.stop()
        if llm is None:
            return
        if not llm.errored:
            if streams is not None:
                await streams.abort()
            await llm.abort(list(self._running))
        with _quiet():
            await asyncio.to_thread(llm.shutdown, timeout=CLOSE_S)
        await _close_zmq(llm)
        # Its finalizer would shut down again, and log errors at interpreter exit.
        llm.shutdown = _do_nothing
        self._folder.remove()

    async def _watch(self) -> None:
        """Restart the core after every death; generations wait for the restart. The watch kills a core that hangs for long."""
        while True:
            await asyncio.sleep(WATCH_S)
            try:
                await self._check_core()
            except Exception:
                logger.exception("the check of the vLLM core has failed")

    async def _check_core(self) -> None:
        if self._llm is None or self._llm.errored:
            logger.error("the vLLM core has died, it is started again")
            await self._unload()
            await self._restart()
        elif self._core_watch is not None:
            self._core_watch.tick()

    async def _restart(self) -> None:
        backoff = Backoff(RESTART_PAUSES_S)
        while self._llm is None:
            await asyncio.sleep(backoff.next_pause_s())
            try:
                self._llm = await self._load()
            except Exception:
                logger.exception("attempt %d to start the vLLM core has failed", backoff.failures)


async def _close_zmq(llm: Any) -> None:
    """Close the ZeroMQ context and two threads left by vLLM to the garbage collector."""
    await asyncio.sleep(0)  # A callback of vLLM on this loop closes the sockets first.
    with suppress(AttributeError):
        llm.engine_core.resources.ctx.destroy(linger=0)


async def _warm_up(llm: Any) -> None:
    """Generate a token with log-probabilities, so vLLM compiles GPU code before the first request.

    The watcher restarts a core that dies meanwhile.
    """
    from vllm.exceptions import VLLMError

    request = GenerateRequest("warm-up", [0], Sampling(max_tokens=1, logprobs=1))
    with suppress(VLLMError):
        async for _ in llm.generate(await _prompt(request), _params(request), request.id):
            pass


def _do_nothing() -> None:
    pass


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress vLLM's warnings about killing processes."""
    vllm = logging.getLogger("vllm")
    level = vllm.level
    vllm.setLevel(logging.ERROR)
    try:
        yield
    finally:
        vllm.setLevel(level)


@contextmanager
def _map_errors(images: Sequence[bytes], fresh: Callable[[], bool]) -> Iterator[None]:
    """Map vLLM's exceptions to the exceptions of the engine interface.

    A ValueError or TypeError before the first token is the request's fault, and so is an AssertionError for a prompt with
    images.
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


async def _prompt(request: GenerateRequest) -> Any:
    """Build vLLM's prompt object.

    A prompt of tokens only is validated immediately. A prompt with images or a constraint passes through vLLM's thread pool,
    because decoding images and compiling grammars would block the event loop for too long.
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


# Separate threads: the default executor renders the prompts of all requests.
_DECODERS = ThreadPoolExecutor(2, "images")


def _decode(images: Sequence[bytes]) -> list[Any]:
    return [_decode_image(data, at) for at, data in enumerate(images)]


def _decode_image(data: bytes, at: int) -> Any:
    """Decode an image as vLLM's own server does: EXIF orientation applied, transparency on white."""
    from vllm.multimodal.media.image import ImageMediaIO

    try:
        return ImageMediaIO().load_bytes(data)
    except Exception as error:  # Pillow's decoders raise exceptions of any class.
        raise RequestRejected(f"image {at} cannot be decoded ({type(error).__name__})") from error


def _params(request: GenerateRequest) -> Any:
    # Not from `vllm`, which looks up each name by importing a module again.
    from vllm.sampling_params import RequestOutputKind, SamplingParams, StructuredOutputsParams

    return SamplingParams(
        **sampling_fields(request.sampling),
        structured_outputs=StructuredOutputsParams(**structured_fields(request.constraint)) if request.constraint else None,
        output_kind=RequestOutputKind.DELTA,
        # Made for this request alone: vLLM need not copy it deeply.
        skip_clone=True,
    )
