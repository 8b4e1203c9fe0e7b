"""Run: the life of a response from the first event to the ending or the handover."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db import DatabaseError, OperationalError

from responses_app.engine_interface import EngineError, EngineOverloaded, RequestRejected
from responses_app.errors import ApiError, DatabaseAway, DatabaseFull, InternalError, InvalidRequest
from responses_app.observability import events
from responses_app.observability.records import current_response, current_trace
from responses_app.protocol.deltas import Compaction
from responses_app.protocol.encoding import EventFrame
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.execute.endings import INVALID_PROMPT, OVERLOADED, OVERLOADED_MESSAGE, STEERED, TIME_LIMIT, RunEndings
from responses_app.runs.execute.output import ResponseOutput
from responses_app.runs.execute.response_limits import NO_LIMITS, ResponseLimits
from responses_app.runs.execute.rounds import Rounds
from responses_app.runs.prepare.items.summary import NO_SUMMARY
from responses_app.store.storage_report.storage_state import storage_state

logger = logging.getLogger("responses.run")

CompactionHook: TypeAlias = Callable[[Sequence[Mapping[str, Any]], int], Awaitable[tuple[Compaction, int] | None]]
DiagnosticsHook: TypeAlias = Callable[[int | None], Awaitable[dict[str, Any]]]
# Seconds that a request waits for the commit of the beginning of its response.
OPENING_LIMIT_S = 20.0
STOPPED = "The server was stopped before this response was complete."


@dataclass(frozen=True, slots=True)
class ResumeState:
    """State in which earlier owners have left a run.

    With `cancelled` or `broken` the run can only be ended: as cancelled, or as failed with `broken` as the message.
    `running_s` are the seconds since the work on the response began.
    """

    cancelled: bool = False
    broken: str | None = None
    running_s: float = 0.0


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run, which the request decides.

    Without `emit_error_event` a failure is reported by the terminal event alone. Without `generates` the engine only reads the
    prompt. A run that `compacts` fails without a summary. `compaction_hook` is called at the end with the output and the length of
    the context in tokens, `diagnostics_hook` with the cached tokens of a single round: it returns `prompt_cache_diagnostics`.
    """

    emit_error_event: bool = True
    generates: bool = True
    limits: ResponseLimits = NO_LIMITS
    compaction_hook: CompactionHook | None = None
    diagnostics_hook: DiagnosticsHook | None = None
    traceparent: str = ""
    compacts: bool = False

    @classmethod
    def from_request(
        cls, create_request: CreateRequest, compaction_hook: CompactionHook | None, diagnostics_hook: DiagnosticsHook | None
    ) -> RunOptions:
        """Return the options of the run of `create_request`."""
        emits, generates = create_request.emit_error_event, create_request.generate
        limits, traceparent = ResponseLimits.from_request(create_request), create_request.traceparent
        return cls(emits, generates, limits, compaction_hook, diagnostics_hook, traceparent, create_request.compacts)


class Run:
    """Run of a response. A task of the run manager executes `run`; any number of subscribers follow the frames.

    `output` writes and publishes events, `rounds` generate. A run that is `queued` only writes its first events and waits for
    another run. `resume` is given if an earlier owner began the run.
    """

    def __init__(
        self,
        output: ResponseOutput,
        rounds: Rounds,
        options: RunOptions,
        *,
        queued: bool = False,
        resume: ResumeState | None = None,
    ) -> None:
        self.uid: str = output.writer.response["id"]
        self.background: bool = output.writer.response["background"]
        self.queued = queued
        # Whether another request follows the run, so that the first client may leave.
        self.is_repeated = False
        # What others read of a run: the visible frames, the state of the log, and the response so far.
        self.publisher, self.writer = output.publisher, output.writer
        self.broadcast = self.publisher.broadcast
        self._output, self._rounds, self._options = output, rounds, options
        self._endings = RunEndings(output, rounds.usage, emit_error_event=options.emit_error_event)
        self._resume = resume or ResumeState()
        self._began = 0.0
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = self._is_stopped = self._is_handed_over = False
        # Reason of an early end as incomplete.
        self._early_reason = ""

    async def wait_created(self) -> None:
        """Wait until the first events are durable. Raises ApiError if the events cannot be written; then the run does not exist.

        A caller that is cancelled while it waits cancels the run, unless the run is in the background.
        """
        try:
            async with aclosing(self.broadcast.subscribe(pause=OPENING_LIMIT_S)) as batches:
                async for batch in batches:
                    if batch:
                        return
                    # A commit under way cannot be withdrawn: it may still store the response, as for a client that has left.
                    self.publisher.withdraw_opening(OperationalError("the response was not stored in time"))
                    self.cancel()
                    raise DatabaseFull if storage_state.has_no_space else DatabaseAway
        except asyncio.CancelledError:
            if not self.background:
                self.cancel()
            raise
        raise self._endings.problem or InternalError("The response ended before it began.")

    async def wait_terminal(self) -> EventFrame:
        """Wait for the end in this process and return the last frame. Raises ApiError if there is no frame."""
        async for batch in self.broadcast.subscribe(len(self.broadcast.frames) - 1):
            del batch
        if not self.broadcast.frames:
            raise self._endings.problem or InternalError("The response ended before it began.")
        return self.broadcast.frames[-1]

    @property
    def problem(self) -> ApiError | None:
        """Error of a request whose response has failed, if that is none of `error_of`."""
        return self._endings.problem

    def engine_name(self) -> str:
        """Return host and port of the engine that has generated last, else `local`."""
        return self._rounds.current.generation.engine_name

    def keep_task(self, task: asyncio.Task[None]) -> None:
        """Set the task that executes `run`. Called once by the run manager."""
        self._task = task

    def on_done(self, call: Callable[[], object]) -> None:
        """Call `call` on the event loop when the run is over, at once if the run is over already."""
        if self._task is None:
            call()
        else:
            self._task.add_done_callback(lambda _: call())

    def detach(self) -> None:
        """Drop the references to the task and the callback: otherwise all frames would wait for the garbage collector."""
        self._task, self.broadcast.on_frames = None, None

    def cancel(self) -> None:
        """Cancel: stop the engine, close the open items, save what was generated."""
        if not self._is_cancelled and self._task is not None:
            self._is_cancelled = True
            self._task.cancel()

    def steer(self) -> bool:
        """End early because the client sends more input. Return False if the run does not end early.

        A run with a complete call for the client goes on: the client knows the call, and only the end shows that no more calls come.
        Calls of server tools that are under way are made to their end, so that the next response has the results.
        """
        if (
            self._is_cancelled
            or self._task is None
            or self.writer.ended
            or not self._options.generates
            or self._has_client_calls
        ):
            return False
        if not self._rounds.stop_behind_calls():
            self._end_early(STEERED)
        return True

    def _end_early(self, reason: str) -> None:
        """End as incomplete for `reason`."""
        if not self._is_cancelled and not self.writer.ended:
            self._early_reason = reason
            self.cancel()

    def stop(self) -> None:
        """End because the server stops and no other process can continue the run."""
        if not self._is_cancelled:
            self._is_stopped = self.background
        self.cancel()

    def hand_over(self) -> None:
        """Stop without an ending, because another process is to continue the run."""
        if not self._is_cancelled:
            self._is_handed_over = True
        self.cancel()

    async def run(self) -> None:
        """Run to the end: a single terminal event, or a handover to another process."""
        self._began = time.monotonic()
        current_trace.set(self._options.traceparent)
        current_response.set(self.uid)
        handed_over = False
        try:
            handed_over = await self._execute_until_rejected()
        except asyncio.CancelledError:
            handed_over = await self._finish_cancelled()
        except RequestRejected as error:
            handed_over = await self._endings.fail(INVALID_PROMPT, str(error))
        except EngineOverloaded as error:
            logger.warning("%s: engine: %s", self.uid, error)
            handed_over = await self._endings.fail(OVERLOADED, OVERLOADED_MESSAGE)
        except EngineError as error:
            logger.error("%s: engine: %s", self.uid, error)
            handed_over = await self._endings.fail_by_engine(error)
        except InvalidRequest as error:
            logger.info("%s: next round: %s", self.uid, error.message)
            handed_over = await self._endings.fail(INVALID_PROMPT, error.message)
        except ApiError as error:
            logger.warning("%s: next round: %s", self.uid, error.message)
            handed_over = await self._endings.fail(error.code or "server_error", error.message)
        except DatabaseError as error:
            handed_over = self._endings.on_database_error(error)
        except Exception:
            logger.exception("%s: run failed", self.uid)
            handed_over = await self._endings.fail("server_error", "The server failed while it generated this response.")
        finally:
            self.broadcast.end(handed_over=handed_over)
            self._log_summary()
            await self._rounds.close()

    def _start_timer(self) -> asyncio.TimerHandle | None:
        """Start the timer of the running time, which includes the time in earlier processes."""
        limit_s = self._options.limits.max_run_seconds
        if limit_s is None or self.queued:
            return None
        remaining_s = max(limit_s - self._resume.running_s, 0.0)
        return asyncio.get_running_loop().call_later(remaining_s, self._end_early, TIME_LIMIT)

    async def _execute_until_rejected(self) -> bool:
        """Execute. An append that is rejected meanwhile cancels the task: the engine may be silent for long."""
        self.publisher.on_rejected = None if self._task is None else self._task.cancel
        timer = self._start_timer()
        try:
            return await self._execute()
        finally:
            if timer is not None:
                timer.cancel()
            self.publisher.on_rejected = None

    async def _execute(self) -> bool:
        """Open, start and generate. Return whether the run is handed over.

        The engine begins while the opening is committed. If the opening is refused, nothing was visible.
        """
        if not self.broadcast.frames:
            self._output.publish(self.writer.open(), opens=True)
            if self.queued:
                await self.publisher.wait_durable()
                return True
        if self._resume.cancelled:
            return await self._endings.cancel()
        if self._resume.broken is not None:
            return await self._endings.fail("server_error", self._resume.broken)
        if self.writer.is_queued:
            self._output.publish(self.writer.start(), starts=True)
        return await self._generate()

    async def _generate(self) -> bool:
        if not self._options.generates:
            await self._rounds.current.generation.warm_up()
            return await self._endings.finish("stop", fill=False)
        finish = await self._rounds.run()
        if self._rounds.is_stopped:
            return await self._endings.end_early(STEERED)
        if self._options.compacts and finish == "stop" and not self.writer.output.all_items:
            return await self._endings.fail("server_error", NO_SUMMARY)
        if self._options.compaction_hook is not None and finish == "stop":
            await self._rounds.save_end()
            await self._append_compaction(self._options.compaction_hook)
        if self._options.diagnostics_hook is not None:
            self._endings.cache_diagnostics = await self._options.diagnostics_hook(self._rounds.cached_in_single_round)
        limit = self._rounds.limit_reached(self._options.limits) if finish == "length" else None
        return await self._endings.finish(finish, stop_sequence=self._rounds.current.stop_sequence, limit=limit)

    async def _append_compaction(self, hook: CompactionHook) -> None:
        """Write the compaction that ends a long context, if `hook` returns a compaction. Count the tokens as output of this response."""
        compacted = await hook(self.writer.output.prompt_items, self._rounds.context_length)
        if compacted is not None:
            compaction, tokens = compacted
            self._rounds.add_output(tokens)
            self._output.write([compaction])

    async def _finish_cancelled(self) -> bool:
        """End as the cause of the cancellation demands. Return whether the run is handed over."""
        if self.publisher.rejected is not None:
            return self._endings.on_database_error(self.publisher.rejected)
        if self.writer.ended or self._is_handed_over:
            return await self._endings.settle()
        if self._is_stopped:
            return await self._endings.fail("server_error", STOPPED)
        if self._early_reason:
            self._rounds.finish_parser()
            limit = self._options.limits.at_time() if self._early_reason == TIME_LIMIT else None
            return await self._endings.end_early(self._early_reason, limit)
        return await self._endings.cancel()

    @property
    def _has_client_calls(self) -> bool:
        """Return whether the output has complete calls that the client is to answer."""
        return any("call_id" in item and item.get("status") != "incomplete" for item in self.writer.output.items)

    def _log_summary(self) -> None:
        status = "moved" if self.broadcast.handed_over else self.writer.response["status"]
        total = self._rounds.total
        logger.info("%s %s %s", self.uid, status, total.summary(self._began))
        if self.broadcast.frames and not self.broadcast.handed_over:
            events.response_ended(total.record(self.writer.response, self._began, self._resume.running_s))
