"""Run that a request has started: the stream and the result, for every API format."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest

from responses_app.access.rate_limits import AdmittedRequest
from responses_app.api.http import HAS_RESPONSE
from responses_app.engine_interface import GenerateRequest
from responses_app.errors import NotFound, ServiceUnavailable
from responses_app.models import Response
from responses_app.observability.records import current_request, trace_context
from responses_app.protocol.encoding import EventFrame
from responses_app.runs import manager
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.broadcast import FrameBatches, Push
from responses_app.runs.execute.endings import error_of
from responses_app.runs.execute.run import Run
from responses_app.runs.new_run import KnownContext
from responses_app.store import repeats
from responses_app.store.log import reader
from responses_app.store.log.rows.shared_prompts import read_length
from responses_app.wire.event_stream import EventStream
from responses_app.wire.sse import StreamEncoder

FAILED = "response.failed"
RESTARTED = "The server is being restarted, and the response goes on."
MAX_EVENT_NUMBER = 2**31 - 1
# Bytes whose hash takes about 0.1 ms.
MAX_LOOP_HASH_BYTES = 64 * 1024


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
    """Run of a request, whose first events are durable, and the place of the request in the limits of the key."""

    run: Run
    first_prompt: GenerateRequest
    ticket: AdmittedRequest

    async def prompt_tokens(self) -> int:
        """Return the length of the first prompt; images count as one token where the engine has not counted them."""
        return self.first_prompt.length or len(self.first_prompt.prompt)

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
        if frame.type == FAILED and self.run.problem is not None:
            raise self.run.problem
        snapshot = reader.snapshot_bytes(frame.data)
        return _without_failure(snapshot) if frame.type == FAILED else snapshot


@dataclass(frozen=True, slots=True)
class RepeatedRun:
    """Run of an earlier request that the client has sent again: the stream begins at the first event."""

    row: Response

    async def prompt_tokens(self) -> int:
        """Return the length of the first prompt."""
        return await sync_to_async(read_length)(self.row.pk)

    def stream(self, request: HttpRequest, encoder: StreamEncoder) -> EventStream:
        """Return the stream of the log. The run goes on without the client."""
        return EventStream(request, lambda push: _repeat(self.row, push), encoder)

    async def snapshot(self) -> bytes:
        """Wait for the end and return the response in JSON. Raises ApiError for a failed response."""
        async with aclosing(manager.current().subscribe(self.row, MAX_EVENT_NUMBER)) as batches:
            async for _ in batches:
                pass
        snapshot = await reader.snapshot(self.row.pk)
        if snapshot is None:
            raise ServiceUnavailable(f"{RESTARTED} Send the request again.")
        await sync_to_async(repeats.forget)(self.row.pk)
        return _without_failure(snapshot)


async def start(request: HttpRequest, order: CreateRequest, ticket: AdmittedRequest) -> StartedRun:
    """Start the run of a request. Raises ApiError; then nothing was stored."""
    known = KnownContext(reserve=ticket.reserve, slot=ticket.slot)
    traceparent, tracestate = trace_context()
    if traceparent:
        order = replace(order, traceparent=traceparent, tracestate=tracestate)
    run, prepared = await manager.current().start_run(order, known)
    if (record := current_request.get()) is not None:
        record.keep_run(lambda: run.writer.response, run.engine_name, order.input)
    if run.publisher.is_stored:
        # From now on the row of the response shows how the request ends.
        request.META[HAS_RESPONSE] = True
    ticket.follow(run, order)
    return StartedRun(run, prepared.request, ticket)


async def start_or_repeat(
    request: HttpRequest, order: CreateRequest, ticket: AdmittedRequest, *, by_body: bool
) -> StartedRun | RepeatedRun:
    """Start the run, or find the run of the same request, whose process has died. Raises ApiError.

    The request is known by its `Idempotency-Key`, or else by its body where `by_body` and RESPONSES_RESUME_API_FORMATS are true.
    """
    fingerprint = await _fingerprint(request, order, by_body=by_body)
    if not fingerprint:
        return await start(request, order, ticket)
    # With a key, an equal request that comes meanwhile waits, and finds the response.
    has_key = fingerprint.startswith(repeats.KEY)
    async with manager.current().start_lock(fingerprint) if has_key else nullcontext():
        row = await manager.current().find_repeated(fingerprint)
        if row is None:
            return await start(request, replace(order, fingerprint=fingerprint), ticket)
    request.META[HAS_RESPONSE] = True
    await manager.current().keep_for_repeat(row)
    await ticket.release()
    return RepeatedRun(row)


async def _fingerprint(request: HttpRequest, order: CreateRequest, *, by_body: bool) -> str:
    """Return the hash of the request; empty if no repeated request can be known by it. A thread hashes a long body."""
    key = request.headers.get("idempotency-key", "").encode()
    if not key and not (by_body and settings.RESPONSES_RESUME_API_FORMATS):
        return ""
    sender = f"{order.project} {order.key} {order.user} {request.path}".encode()
    parts = (repeats.KEY, sender, key) if key else (repeats.BODY, sender)
    make = partial(repeats.fingerprint, *parts, request.body)
    return make() if len(request.body) <= MAX_LOOP_HASH_BYTES else await asyncio.to_thread(make)


async def _repeat(row: Response, push: Push | None) -> FrameBatches:
    """Yield the frames of a response. A client that has them all sends the next equal request for another response."""
    async with aclosing(manager.current().subscribe(row, push=push)) as batches:
        async for batch in batches:
            yield batch
            if batch and batch[-1].type in reader.TERMINAL:
                await sync_to_async(repeats.forget)(row.pk)


def _without_failure(snapshot: bytes) -> bytes:
    """Return the snapshot. Raises the ApiError of a failed response."""
    error = error_of(orjson.loads(snapshot))
    if error is not None:
        raise error
    return snapshot


async def _wait_terminal(run: Run) -> EventFrame:
    """Return the terminal frame, from this process or another. Raises NotFound of a response that was deleted, ServiceUnavailable."""
    frame = await run.wait_terminal()
    if not run.broadcast.handed_over:
        return frame
    async with aclosing(manager.current().subscribe(run, frame.number)) as batches:
        async for batch in batches:
            frame = batch[-1] if batch else frame
    if frame.type not in reader.TERMINAL:
        pk = run.publisher.pk
        if pk is not None and not await Response.objects.filter(pk=pk).aexists():
            raise NotFound(f"The response with id '{run.uid}' was deleted while it ran.")
        can_be_retrieved = run.writer.response["store"]
        raise ServiceUnavailable(
            f"{RESTARTED} " + (f"Retrieve it as {run.uid} in a moment." if can_be_retrieved else "Send the request again.")
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
