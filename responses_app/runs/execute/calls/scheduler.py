"""Scheduler of the calls of server tools: calls begin while the model writes, and results are appended as these come."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Set
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import orjson

from responses_app.engine_interface import Chunk
from responses_app.observability import events
from responses_app.observability.records import EndedCall, current_trace
from responses_app.protocol.deltas import Delta, ForItem
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.runs.execute.calls.problems import CUT_OFF, UNKNOWN_OUTCOME
from responses_app.runs.execute.output import ResponseOutput
from responses_app.store.log.token_log import CallStart
from responses_app.tools.base import ToolExecutor
from responses_app.tools.includes import drop_excluded
from responses_app.tools.limits import ToolLimits

logger = logging.getLogger("responses.tools")

# A cancelled tool gets this long to clean up.
STOP_LIMIT_S = 1.0

# Takes the item of a call and its result.
CheckResult: TypeAlias = Callable[[dict[str, Any], Delta], Awaitable[Delta]]


@dataclass(frozen=True, slots=True)
class PendingCall:
    """Call without a result: the output index, and the item with the arguments."""

    index: int
    item: dict[str, Any]


class CallScheduler:
    """Calls of server tools in a run.

    A call begins when its arguments are complete and a slot is free; up to `limits.parallel_calls` calls run side by side. The begin
    mark of a call is in the log before the tool is entered, and on disk if a repetition is not safe. `begun` are the output indexes
    of the calls that an earlier owner of the run began: without a result these run again only if that is safe. `check` returns a
    result, or another in place of it.

    Only the task of the run calls the methods.
    """

    def __init__(
        self,
        output: ResponseOutput,
        tools: ToolExecutor,
        limits: ToolLimits,
        include: Collection[str] = (),
        begun: Set[int] = frozenset(),
        check: CheckResult | None = None,
    ) -> None:
        self._output, self._tools = output, tools
        self._include, self._begun, self._check = include, begun, check
        self._slots = limits.parallel_calls
        # Output index of a call whose arguments are not complete although its round has ended.
        self.cut_off: int | None = None
        # Set while calls are made: generate no more, and end behind these calls.
        self.is_stopped = False
        # Output indexes of the calls that were queued or refused.
        self._decided: set[int] = set()
        self._queue: deque[PendingCall] = deque()
        self._running: dict[int, asyncio.Task[None]] = {}
        # Progress, and results with True.
        self._arrived: deque[tuple[ForItem, bool]] = deque()
        self._news = asyncio.Event()

    @property
    def has_new_calls(self) -> bool:
        """Return whether `begin` has to decide about calls."""
        return not self._output.writer.output.waiting_indexes <= self._decided

    def stop_generation(self) -> bool:
        """End the generation, and let the complete calls end. Return False, and do nothing, if there is no such call."""
        if not (self._running or self._queue or self.has_new_calls):
            return False
        self.is_stopped = True
        self._news.set()
        return True

    async def begin(self) -> None:
        """Publish the buffer of the output, and begin the calls that can begin. Raises DatabaseError."""
        self._decide()
        starting = self._take_startable()
        if not starting:
            self._output.publish()
            return
        for call in starting:
            self._output.publisher.unsaved.append(CallStart(call.index))
        is_safe = all(self._tools.is_repeatable(call.item) for call in starting)
        await self._output.publish_and_wait(strict=not is_safe)
        for call in starting:
            self._running[call.index] = asyncio.create_task(self._run(call), name=call.item["id"])

    async def finish(self) -> None:
        """Begin all complete calls, and append progress and results until no call is left. Raises DatabaseError."""
        await self.begin()
        while self._running or self._queue:
            await self._news.wait()
            self._news.clear()
            while self._arrived:
                await self._append_arrived()
        await self._output.publisher.wait_durable()

    async def merge(self, chunks: AsyncIterator[Chunk]) -> AsyncGenerator[Chunk, None]:
        """Yield `chunks`, up to `stop_generation`. Append progress and results while the engine is quiet. Raises DatabaseError."""
        while not self.is_stopped:
            # Without a running call no task is needed for a chunk.
            chunk = await (self._next_beside_calls(chunks) if self._running else anext(chunks, None))
            if chunk is None:
                return
            yield chunk

    async def close(self) -> None:
        """Cancel the calls that still run, and wait up to STOP_LIMIT_S seconds for these."""
        tasks = set(self._running.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_LIMIT_S)

    def _decide(self) -> None:
        """Queue the calls that are complete, or write why these cannot run."""
        for index in sorted(self._output.writer.output.waiting_indexes - self._decided):
            self._decided.add(index)
            items = self._output.writer.output.all_items
            problem = self._call_problem(index, items)
            if problem is None:
                self._queue.append(PendingCall(index, items[index]))
            else:
                self._write(ForItem(index, self._tools.failure(items[index], problem)))

    def _call_problem(self, index: int, items: list[dict[str, Any]]) -> str | None:
        """Return why the call at `index` cannot run, or None."""
        if index == self.cut_off:
            return CUT_OFF
        if index in self._begun:
            return None if self._tools.is_repeatable(items[index]) else UNKNOWN_OUTCOME
        return None

    def _take_startable(self) -> list[PendingCall]:
        """Take the calls out of the queue for which slots are free, and whose begin marks can be in the log first.

        A mark needs an event. Arguments end with an event, and a slot is freed by the event of a result.
        """
        count = min(len(self._queue), self._slots - len(self._running))
        first = [self._queue.popleft() for _ in range(count)]
        unsafe = [] if self._output.has_events else [call for call in first if not self._tools.is_repeatable(call.item)]
        if len(unsafe) == len(first) and not self._running:
            # No event is to come.
            return first
        self._queue.extendleft(reversed(unsafe))
        return [call for call in first if call not in unsafe]

    async def _next_beside_calls(self, chunks: AsyncIterator[Chunk]) -> Chunk | None:
        """Return the next chunk, None behind the last and after `stop_generation`; append what arrives before."""
        upcoming = asyncio.create_task(_next(chunks))
        upcoming.add_done_callback(lambda _: self._news.set())
        try:
            while not upcoming.done():
                if self.is_stopped:
                    await _cancel(upcoming)
                    return None
                self._news.clear()
                if self._arrived:
                    await self._append_arrived()
                else:
                    await self._news.wait()
            return upcoming.result()
        except BaseException:
            await _cancel(upcoming)
            raise

    async def _append_arrived(self) -> None:
        """Append the oldest delta that arrived; behind a result, calls in the queue can begin."""
        await self._output.wait_room()
        delta, is_result = self._arrived.popleft()
        if is_result:
            del self._running[delta.output_index]
        self._write(delta)
        await self.begin()

    def _write(self, delta: ForItem) -> None:
        delta = replace(delta, delta=drop_excluded(delta.delta, self._include))
        self._output.write([delta])
        self._output.publisher.unsaved.append(delta)
        if isinstance(delta.delta, ToolResult) and delta.delta.model_output is not None:
            self._output.save_model_output(delta.output_index, delta.delta.model_output)

    async def _run(self, call: PendingCall) -> None:
        """Run `call`, and add progress and the result to the deltas that arrived."""
        began_ns = time.time_ns()
        try:
            result = await self._tools.run(call.item, lambda delta: self._add(call, delta))
            if self._check is not None:
                result = await self._check(call.item, result)
            # A result with numbers beyond 64 bits or too many levels would fail the response when its event is encoded.
            orjson.dumps(asdict(result))
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            logger.exception("%s: %s: tool failed", self._output.writer.response["id"], call.item["id"])
            result = self._tools.failure(call.item, f"The tool failed: {type(error).__name__}.")
        name = call.item.get("name") or FAMILIES[call.item["type"]].tool or call.item["type"]
        events.call_ended(EndedCall(current_trace.get(), began_ns, name, call.item, result))
        self._add(call, result, is_result=True)

    def _add(self, call: PendingCall, delta: Delta, *, is_result: bool = False) -> None:
        self._arrived.append((ForItem(call.index, delta), is_result))
        self._news.set()


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _next(chunks: AsyncIterator[Chunk]) -> Chunk | None:
    return await anext(chunks, None)
