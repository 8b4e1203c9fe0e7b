"""Streams of token ids, which pass by vLLM's output processor.

For each request and step vLLM's processor makes two objects, counts, and looks for stop strings and log-probabilities. Most requests
need their token ids alone. The outputs of all other requests go on to the processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from responses_app.engine_interface import Chunk, EngineUnavailable, GenerateRequest
from responses_app.engines.vllm.params import FINISH_REASONS


class TokenStreams:
    """Streams of the requests of an AsyncLLM, `llm`, that need their token ids alone."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._core = llm.engine_core
        self._streams: dict[str, _Stream] = {}
        # vLLM's output handler takes each output of a step from here.
        self._get_output = self._core.get_output_async
        self._core.get_output_async = self._get_other_output

    def __len__(self) -> int:
        """Return the number of unfinished requests."""
        return len(self._streams)

    def accepts(self, request: GenerateRequest) -> bool:
        """Return whether the request needs its token ids alone, and vLLM neither counts requests nor has its handler to start yet."""
        needs_more = request.images or request.constraint is not None or request.sampling.logprobs is not None
        limits = self._llm.vllm_config.scheduler_config
        is_counted = self._llm.log_stats or limits.max_num_queued_reqs is not None or limits.max_num_queued_tokens is not None
        return not needs_more and not is_counted and self._llm.output_handler is not None

    async def generate(self, request: GenerateRequest, prompt: Any, params: Any, adapter: Any) -> AsyncGenerator[Chunk, None]:
        """Generate chunks. Raises EngineUnavailable, and the errors of vLLM."""
        processor = self._llm.input_processor
        core_request = processor.process_inputs(
            request.id,
            prompt,
            params,
            supported_tasks=await self._llm.get_supported_tasks(),
            lora_request=adapter,
            priority=request.priority,
        )
        processor.assign_request_id(core_request)
        uid, stream = core_request.request_id, _Stream()
        self._streams[uid] = stream
        try:
            await self._core.add_request_async(core_request)
            chunk = await stream.chunk(request.id)
            chunk.prompt, chunk.cached = len(request.prompt), stream.cached
            yield chunk
            while chunk.finish is None:
                chunk = await stream.chunk(request.id)
                yield chunk
        finally:
            if self._streams.pop(uid, None) is not None:
                await self._core.abort_requests_async([uid])

    async def abort(self) -> None:
        """End all requests with `abort`."""
        uids = list(self._streams)
        while self._streams:
            self._streams.popitem()[1].abort()
        await self._core.abort_requests_async(uids)

    async def _get_other_output(self) -> Any:
        """Return the next output of vLLM's core, without the part that belongs to the streams."""
        try:
            output = await self._get_output()
        except Exception as error:
            for stream in self._streams.values():
                stream.fail(error)
            raise
        if self._streams:
            output.outputs = [one for one in output.outputs if not self._take(one)]
        return output

    def _take(self, output: Any) -> bool:
        """Give an output to its stream. Return False if it belongs to no stream."""
        uid = output.request_id
        if (stream := self._streams.get(uid)) is None:
            return False
        if output.finish_reason is not None:
            del self._streams[uid]
        stream.feed(output)
        return True


class _Stream:
    """Tokens of a request that have not been read."""

    def __init__(self) -> None:
        self.cached = 0
        self._tokens: list[int] = []
        self._finish: str | None = None
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def chunk(self, name: str) -> Chunk:
        """Wait for new tokens, or the end. Raises the error of the core, and EngineUnavailable if vLLM gave up on the request `name`."""
        if not self._tokens and self._finish is None and self._error is None:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if self._error is not None:
            raise self._error
        if self._finish == "error":
            raise EngineUnavailable(f"vLLM gave up on {name}")
        tokens, self._tokens = self._tokens, []
        return Chunk(tokens, finish=None if self._finish is None else FINISH_REASONS[self._finish])

    def feed(self, output: Any) -> None:
        """Add the output of a step."""
        self._tokens += output.new_token_ids
        if output.prefill_stats is not None:
            self.cached = output.prefill_stats.num_cached_tokens
        if output.finish_reason is not None:
            self._finish = str(output.finish_reason)
        if self._tokens or self._finish is not None:
            self._wake()

    def abort(self) -> None:
        """End the stream."""
        self._finish = "abort"
        self._wake()

    def fail(self, error: Exception) -> None:
        """End the stream with an error."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
