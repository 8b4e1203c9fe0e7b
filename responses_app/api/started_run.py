"""Run that a request has started: its stream, and its result, for every API format."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

import orjson
from django.http import HttpRequest

from responses_app.access.rate_limits import AdmittedRequest
from responses_app.api.http import HAS_RESPONSE
from responses_app.errors import ServiceUnavailable
from responses_app.protocol.encoding import EventFrame
from responses_app.runs import manager
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.runs.execute.endings import error_of
from responses_app.runs.execute.run import Run
from responses_app.store.log import reader
from responses_app.wire.event_stream import EventStream
from responses_app.wire.sse import StreamEncoder

FAILED = "response.failed"


class RunStream(EventStream):
    """Event stream that stops the run when the client disconnects, also before the first byte."""

    def __init__(self, request: HttpRequest, run: Run, encoder: StreamEncoder, ticket: AdmittedRequest) -> None:
        super().__init__(request, lambda push: _stream_run(run, ticket, push), encoder)
        self._run, self._loop = run, asyncio.get_running_loop()

    def close(self) -> None:
        """Stop the run unless ended. Django calls this in a thread after the last byte or a disconnect."""
        super().close()
        if not self._run.broadcast.ended:
            self._loop.call_soon_threadsafe(manager.current().client_disconnected, self._run)


@dataclass(frozen=True, slots=True)
class StartedRun:
    """Run of a request, whose first events are durable, and the place of the request in the limits of the key.

    `prompt_tokens` is the length of the first prompt, as far as it is known before the engine has counted.
    """

    run: Run
    prompt_tokens: int
    ticket: AdmittedRequest

    def stream(self, request: HttpRequest, encoder: StreamEncoder) -> RunStream:
        """Return the stream of the run. The run ends with the client."""
        return RunStream(request, self.run, encoder, self.ticket)

    async def snapshot(self) -> bytes:
        """Wait for the end and return the response in JSON. Raises ApiError for a failed response, ServiceUnavailable."""
        try:
            frame = await _wait_terminal(self.run)
            await self.ticket.release()
        except asyncio.CancelledError:
            manager.current().client_disconnected(self.run)
            raise
        snapshot = reader.snapshot_bytes(frame.data)
        if frame.type == FAILED and (error := error_of(orjson.loads(snapshot))) is not None:
            raise error
        return snapshot


async def start(request: HttpRequest, order: CreateRequest, ticket: AdmittedRequest) -> StartedRun:
    """Start the run of a request. Raises ApiError; then nothing was stored."""
    run, prepared = await manager.current().start_run(order)
    if run.publisher.is_stored:
        # From now on the row of the response counts against the limit, and shows how the request ends.
        request.META[HAS_RESPONSE] = True
        await ticket.release()
    ticket.release_on_end(run)
    return StartedRun(run, prepared.request.length or len(prepared.request.prompt), ticket)


async def _wait_terminal(run: Run) -> EventFrame:
    """Return the terminal frame, from this process or another. Raises ServiceUnavailable if this process stops before."""
    frame = await run.wait_terminal()
    if not run.broadcast.handed_over:
        return frame
    async with aclosing(manager.current().subscribe(run, frame.number)) as batches:
        async for batch in batches:
            frame = batch[-1] if batch else frame
    if frame.type not in reader.TERMINAL:
        raise ServiceUnavailable(
            f"The server is being restarted, and the response goes on. Retrieve it as {run.uid} in a moment."
        )
    return frame


async def _stream_run(run: Run, ticket: AdmittedRequest, push: Push | None) -> FrameBatches:
    try:
        async with aclosing(manager.current().subscribe(run, push=push)) as batches:
            async for batch in batches:
                if batch and batch[-1].type in reader.TERMINAL:
                    await ticket.release()
                yield batch
    finally:
        manager.current().client_disconnected(run)
