"""The loop of one response: tokens in, events out, each encoded once, numbered once, durable before it is visible."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.db import DatabaseError

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import EngineError, Finish, RequestRejected
from responses_app.errors import InternalError
from responses_app.protocol.deltas import Compaction, EndItem
from responses_app.protocol.events import Event
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.endings import INVALID_PROMPT, SERVED_TIER, RunEndings
from responses_app.runs.execute.generation import Generation, NotResumable
from responses_app.runs.execute.usage import UsageCounter
from responses_app.runs.prepare.conversation import locked
from responses_app.store.log.records import ConversationLocked, EventFrame, ResponseLog
from responses_app.store.log.writer import LogWriter

logger = logging.getLogger("responses.run")

CompactionHook: TypeAlias = Callable[[Sequence[Mapping[str, Any]], int], Awaitable[tuple[Compaction, int] | None]]
STOPPED = "The server was stopped before this response was complete."


@dataclass(frozen=True, slots=True)
class ResumeState:
    """What earlier owners have made of a run: its frames, and whether its model had said everything.

    `cancelled` and `broken` say that all there is left to do is to end it, and why.
    """

    frames: Sequence[EventFrame] = ()
    closed: bool = False
    cancelled: bool = False
    broken: str | None = None


class Run(RunEndings):
    """One response while it is made. A task of the hub drives `go`; any number of listeners follow it as a `Feed`.

    `log` is None for `store:false`: then nothing is written and an event is visible at once. With `patient` false
    (RESPONSES_DURABILITY=terminal) only the terminal event waits for the database. One that is `parked` is opened and then
    left to whoever has room for it. `shorten` is asked at the end for a compaction, with the output and the length of the
    context in tokens. A run with a `past` goes on where that ended; its writer and its listener are there already. Without
    `aloud` a failure is told by the terminal event alone. One that does not `speak` only has the engine read its prompt.
    """

    def __init__(
        self,
        writer: Writer,
        generation: Generation,
        listener: OutputParser,
        *,
        recorder: LogWriter,
        log: ResponseLog | None,
        prompt: int,
        wait_for_commit: bool = True,
        queued: bool = False,
        compaction_hook: CompactionHook | None = None,
        resume: ResumeState | None = None,
        emit_error_event: bool = True,
        generate: bool = True,
    ) -> None:
        self._past = resume or ResumeState()
        tally, frames = UsageCounter(prompt=prompt, output=len(generation.heard)), self._past.frames
        super().__init__(
            writer,
            listener,
            tally,
            recorder=recorder,
            log=log,
            wait_for_commit=wait_for_commit,
            frames=frames,
            emit_error_event=emit_error_event,
        )
        self.background: bool = writer.response["background"]
        self.queued = queued
        self._generation, self._shorten, self._speaks = generation, compaction_hook, generate
        self._task: asyncio.Task[None] | None = None
        self._left = self._stopped = self._released = self._steered = False

    def own(self, task: asyncio.Task[None]) -> None:
        """Called once by the hub with the task that drives `go`."""
        self._task = task

    def on_done(self, call: Callable[[], object]) -> None:
        """Call this when it is over, however that comes; from the loop. At once if it is."""
        if self._task is None:
            call()
        else:
            self._task.add_done_callback(lambda _: call())

    def detach(self) -> None:
        """Called by the hub when that task has ended: with what it was bound to, all its frames would wait for the garbage collector."""
        self._task, self.shown = None, None

    def cancel(self) -> None:
        """The client is gone, or does not want it any more: stop the engine, close the open item, keep what was generated (F4)."""
        if not self._left and self._task is not None:
            self._left = True
            self._task.cancel()

    def steer(self) -> bool:
        """Somebody has more to say before this goes on: end at once, with what was said so far. False if it goes on to its own end.

        So it does once a call is complete: whoever is to answer it has been told, and only the end says that no more will come.
        """
        if self._left or self._task is None or self._writer.ended or not self._speaks or self._calls:
            return False
        self._steered = True
        self.cancel()
        return True

    def stop(self) -> None:
        """The server stops, and nobody can go on with this run."""
        if not self._left:
            self._stopped = self.background
        self.cancel()

    def hand_over(self) -> None:
        """Somebody else goes on with this run, or is to: stop, and say nothing more."""
        if not self._left:
            self._released = True
        self.cancel()

    @property
    def keys(self) -> Sequence[int]:
        """The primary keys of its items, the input's first, once it has ended here; empty if they are not kept."""
        return [*self._log.asked_keys, *self._log.said_keys] if self._log is not None else []

    async def wait_created(self) -> None:
        """The first events are durable. Raises ApiError if they cannot be, and then the run is nothing.

        If the caller goes away while it waits, so does the run, unless it is one of the background: the log is closed.
        """
        try:
            async with aclosing(self.listen()) as frames:
                async for _ in frames:
                    return
        except asyncio.CancelledError:
            if not self.background:
                self.cancel()
            raise
        raise self.problem or InternalError("The response ended before it began.")

    async def run(self) -> None:
        """Generate to the end. Ends with exactly one terminal event, or hands over to whoever goes on."""
        self.tally.began = time.monotonic()
        moved = False
        try:
            moved = await self._go()
        except asyncio.CancelledError:
            moved = await self._finish_cancelled()
        except RequestRejected as error:
            moved = await self._fail(INVALID_PROMPT, str(error))
        except EngineError as error:
            logger.error("%s: engine: %s", self.uid, error)
            told = str(error) if isinstance(error, NotResumable) else f"The engine failed: {error}"
            moved = await self._fail("server_error", told)
        except ConversationLocked:
            self.problem = locked()
        except DatabaseError as error:
            moved = self._on_database_error(error)
        except Exception:
            logger.exception("%s: run failed", self.uid)
            moved = await self._fail("server_error", "The server failed while it generated this response.")
        finally:
            self.end(handed_over=moved)
            self._log_summary()

    async def wait_terminal(self) -> EventFrame:
        """The last frame that comes here. Raises what went wrong if there is none."""
        async for frame in self.listen(len(self.frames) - 1):
            del frame
        if not self.frames:
            raise self.problem or InternalError("The response ended before it began.")
        return self.frames[-1]

    async def _go(self) -> bool:
        """Whether somebody else is to go on."""
        if not self.frames:
            await self.publish_and_wait(self._writer.open(), opens=True)
            if self.queued:
                return True
        if self._past.broken is not None:
            return await self._fail("server_error", self._past.broken)
        if self._past.cancelled:
            await self.publish_and_wait(
                self._writer.cancel(usage=self._partial_usage(), service_tier=SERVED_TIER), ending=self._ending
            )
            return False
        if self._writer.is_queued:
            await self.publish_and_wait(self._writer.start(), starts=True)
        await self._generate()
        return False

    async def _generate(self) -> None:
        if not self._speaks:
            await self._prefill_only()
            return
        finish, events = ("stop", []) if self._past.closed else await self._consume_engine()
        if not self._past.closed:
            events += self._write(self._listener.finish())
            if self._shorten is not None and finish == "stop":
                await self.publish_and_wait(events + self._write([EndItem()]), closed=True)
                events = []
        if self._shorten is not None and finish == "stop":
            events = await self._compacted(self._shorten)
        await self.publish_and_wait(events + self._finish(finish), ending=self._ending)

    async def _prefill_only(self) -> None:
        """The engine reads the prompt, so that a request which goes on from it finds it cached; nothing is said."""
        await self._generation.warm_up()
        done = self._writer.complete(now=int(time.time()), usage=self._usage(), fill=False, service_tier=SERVED_TIER)
        await self.publish_and_wait(done, ending=self._ending)

    async def _consume_engine(self) -> tuple[Finish | None, list[Event]]:
        """How it ended, and the last events, which go out with the ending."""
        async with aclosing(self._generation.chunks()) as chunks:
            async for chunk in chunks:
                # One append of a run at a time. It is waited for here and not behind `say`, when nearly always it is done: a task
                # that wakes up for each commit costs as much as the event. And before anything is made of the chunk: if we are
                # cancelled meanwhile, no number is left out.
                await self.wait_durable()
                self.tally.count(chunk)
                self.fresh.append(chunk)
                events = self._write(self._listener.feed(chunk))
                # When nothing more will be said, leaving the loop stops the engine.
                finish = "stop" if self._listener.done else chunk.finish
                if finish is not None:
                    return finish, events
                self.publish(events)
        return None, []

    async def _compacted(self, compaction_hook: CompactionHook) -> list[Event]:
        """The compaction that ends a long context, if it is wanted; its tokens are of this response (responses-api.md §3.6)."""
        found = await compaction_hook(self._writer.response["output"], self.tally.prompt + self.tally.output)
        if found is None:
            return []
        piece, tokens = found
        self.tally.output += tokens
        return self._write([piece])

    async def _finish_cancelled(self) -> bool:
        """Close the log as cancelled, unless somebody goes on, or the end was written already and only its commit was awaited."""
        if self._writer.ended or self._released:
            await self.wait_idle()
            return not self._writer.ended or self._ends_open
        if self._stopped:
            return await self._end_with(self._failure("server_error", STOPPED))
        if self._steered:
            return await self._end_with(self._steered_ending())
        return await self._end_with(self._writer.cancel(usage=self._partial_usage(), service_tier=SERVED_TIER))

    @property
    def _calls(self) -> bool:
        """Whether it has made calls that are complete."""
        return any("call_id" in item and item.get("status") != "incomplete" for item in self._writer.items)
