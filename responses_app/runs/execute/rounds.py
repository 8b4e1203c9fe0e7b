"""Rounds of a run: a round has a prompt, a generation and a parser."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import Finish
from responses_app.protocol.deltas import Delta, EndItem, ForItem
from responses_app.protocol.items.base import Item
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.runs.execute.generation import Generation
from responses_app.runs.execute.output import ResponseOutput, RoundOutput
from responses_app.runs.execute.response_object import usage
from responses_app.runs.execute.server_calls import UNKNOWN_OUTCOME, PendingCall, run_calls
from responses_app.runs.execute.token_log import RoundEnd, RoundStart
from responses_app.runs.execute.usage import UsageCounter
from responses_app.tools.base import ToolExecutor
from responses_app.tools.includes import drop_excluded
from responses_app.tools.limits import ToolLimits

CALL_LIMIT_REACHED = "This call was not made: the limit of tool calls for this response is reached. Answer without more calls."


class Round:
    """Round with a prompt, a generation and a parser. `prompt` is the length of the prompt in tokens.

    With `end` an earlier owner of the run has finished the generation and the parser, and saved that in the log. Without `generates`
    only the parser writes.
    """

    def __init__(
        self, generation: Generation, parser: OutputParser, prompt: int, end: RoundEnd | None = None, *, generates: bool = True
    ) -> None:
        self.has_ended = self.is_saved = end is not None
        self._generates = generates
        self._generation, self._parser = generation, parser
        end = end or RoundEnd(prompt)
        self._counter = UsageCounter(end.prompt, end.cached, len(generation.tokens))

    @property
    def prompt(self) -> Sequence[int]:
        """Token ids of the prompt."""
        return self._generation.prompt

    @property
    def usage(self) -> UsageCounter:
        """Token counts of the round so far."""
        self._counter.reasoning = self._parser.reasoning_tokens
        return self._counter

    async def generate(self, output: RoundOutput) -> Finish | None:
        """Generate to the end and return how the engine ended. The last deltas are added to `output` but not published.

        Raises EngineUnavailable, NotResumable, RequestRejected, and DatabaseError if `output` cannot be written.
        """
        if not self._generates:
            return "stop"
        generation, parser, counter = self._generation, self._parser, self._counter
        async with aclosing(generation.chunks()) as chunks:
            async for chunk in chunks:
                # A run has one append under way at a time. The wait is here and not behind `publish`, when the append is nearly
                # always done: a task that wakes up for each commit costs as much as the event. The wait comes before the parser:
                # a cancellation meanwhile leaves no sequence number out.
                await output.wait_durable()
                counter.count(chunk)
                output.add(chunk, parser.feed(chunk))
                finish = "stop" if parser.done else chunk.finish
                if finish is not None:
                    # Leaving the loop stops the engine.
                    return finish
                output.publish()
        return None

    def finish_parser(self) -> list[Delta]:
        """Finish the parser and return the deltas that the parser held back; nothing if the round has ended."""
        if self.has_ended:
            return []
        self.has_ended = True
        return self._parser.finish()

    async def prefill(self) -> None:
        """Fill the prefix cache of the engine with the prompt, without generating. Raises EngineUnavailable, RequestRejected."""
        await self._generation.warm_up()


class TooManyRounds(Exception):
    """Error of a run in which the model still calls tools in the last round. `limit` is the number of rounds."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


NextRound: TypeAlias = Callable[[int, Sequence[Item], int], Awaitable[Round]]


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """Tools of a run, and the function that creates the next round from the results of tools.

    `next_round` makes a round from its number, the output so far and the output tokens so far. The limits hold for the response.
    A response with `prepares` has a round without generation before the others; it does not count for `max_rounds`.
    """

    tools: ToolExecutor
    next_round: NextRound
    limits: ToolLimits
    prepares: bool = False
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    # Parts of results that items show: the `include` of the request.
    include: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """Position of a run: number of the current round, first item of that round, usage of the earlier rounds."""

    number: int = 0
    first_item: int = 0
    usage: UsageCounter = field(default_factory=UsageCounter)


class Rounds:
    """Rounds of a run, in sequence.

    A round may end with calls that the server runs. Their results are appended as they come, and the next round begins, until the
    model is done, a client must answer, or a limit is reached. Without `loop` there is one round.
    """

    def __init__(
        self, first: Round, output: ResponseOutput, loop: ToolLoop | None = None, progress: RoundProgress | None = None
    ) -> None:
        progress = progress or RoundProgress()
        self._current, self._output, self._loop = first, output, loop
        self._number, self._first_item = progress.number, progress.first_item
        # Sum over the rounds that are over, and over generations beside the rounds.
        self._earlier = progress.usage

    async def run(self) -> Finish | None:
        """Generate until the model is done. Return how the engine ended; the last events wait in the output.

        Raises TooManyRounds, ApiError if the next round cannot be planned, and the errors of `Round.generate`.
        """
        while True:
            finish = await self._generate()
            if finish != "stop" or self._loop is None or not any(map(self._loop.tools.can_run, self._round_items())):
                return finish
            may_have_run = self._current.is_saved
            await self.save_end(strict=True)
            await self._run_calls(self._loop, may_have_run=may_have_run)
            if any(map(_needs_client, self._round_items())):
                return finish
            limit = self._loop.max_output_tokens
            if limit is not None and self.total.output >= limit:
                return "length"
            await self._begin_next(self._loop)

    async def close(self) -> None:
        """Close the connections of the tools."""
        if self._loop is not None:
            await self._loop.tools.close()

    async def prefill(self) -> None:
        """Have the engine read the first prompt without generating. Raises EngineUnavailable, RequestRejected."""
        await self._current.prefill()

    def finish_parser(self) -> None:
        """Write the deltas that the parser holds back, as before an early ending."""
        self._output.write(self._current.finish_parser())

    async def save_end(self, *, strict: bool = False) -> None:
        """Close the open item and make the end of the generation durable, once. Raises DatabaseError.

        With `strict` the end is on disk before this returns: calls of tools are about to begin.
        """
        if self._current.is_saved:
            return
        self._current.is_saved = True
        counter = self._current.usage
        self._output.write([EndItem()])
        self._output.save(RoundEnd(counter.prompt, counter.cached))
        await self._output.publish_and_wait(strict=strict)

    def add_output(self, tokens: int) -> None:
        """Count output tokens of a generation beside the rounds."""
        self._earlier.output += tokens

    @property
    def context_length(self) -> int:
        """Tokens of the last prompt and of the answer to the prompt."""
        return self._current.usage.prompt + self._current.usage.output

    @property
    def total(self) -> UsageCounter:
        """Token counts of all rounds together."""
        return self._earlier.plus(self._current.usage)

    def usage(self) -> dict[str, Any]:
        """Return the usage object: input, cached, output and reasoning tokens are summed over the rounds."""
        total = self.total
        return usage(total.prompt, total.cached, total.output, total.reasoning)

    async def _generate(self) -> Finish | None:
        if self._current.has_ended:
            return "stop"
        finish = await self._current.generate(self._output)
        self.finish_parser()
        return finish

    async def _run_calls(self, loop: ToolLoop, *, may_have_run: bool) -> None:
        """Run the pending calls and append the results. With `may_have_run` an earlier owner of the run may have run these."""
        calls = [PendingCall(*call) for call in self._output.writer.pending_calls]
        allowed = self._allowed_calls(loop)
        runnable = []
        for call in calls:
            if call.index not in allowed:
                await self._append_tool_delta(ForItem(call.index, loop.tools.failure(call.item, CALL_LIMIT_REACHED)), loop)
            elif may_have_run and not loop.tools.is_repeatable(call.item):
                await self._append_tool_delta(ForItem(call.index, loop.tools.failure(call.item, UNKNOWN_OUTCOME)), loop)
            else:
                runnable.append(call)
        async with aclosing(run_calls(runnable, loop.tools, loop.limits.parallel_calls)) as deltas:
            async for delta in deltas:
                await self._append_tool_delta(delta, loop)

    async def _append_tool_delta(self, delta: ForItem, loop: ToolLoop) -> None:
        delta = replace(delta, delta=drop_excluded(delta.delta, loop.include))
        self._output.write([delta])
        self._output.save(delta)
        if isinstance(delta.delta, ToolResult) and delta.delta.model_output is not None:
            self._output.save_model_output(delta.output_index, delta.delta.model_output)
        await self._output.publish_and_wait()

    async def _begin_next(self, loop: ToolLoop) -> None:
        number, items = self._number + 1, self._output.writer.prompt_items
        if number == loop.limits.rounds + loop.prepares:
            raise TooManyRounds(loop.limits.rounds)
        following = await loop.next_round(number, items, self.total.output)
        self._earlier = self.total
        self._current, self._number, self._first_item = following, number, len(items)
        self._output.save(RoundStart(following.prompt))

    def _items(self) -> list[Item]:
        """Return all items in the order of the output indexes, pending calls included, at the end of a generation."""
        writer = self._output.writer
        pending, closed = dict(writer.pending_calls), iter(writer.items)
        count = len(pending) + len(writer.items)
        return [pending[index] if index in pending else next(closed) for index in range(count)]

    def _round_items(self) -> list[Item]:
        """Return the items of the current round."""
        return self._items()[self._first_item :]

    def _allowed_calls(self, loop: ToolLoop) -> set[int]:
        """Return the output indexes of the calls that may run: within `max_tool_calls` and the limit of the server."""
        limit = loop.limits.calls if loop.max_tool_calls is None else min(loop.limits.calls, loop.max_tool_calls)
        runnable = [(index, item) for index, item in enumerate(self._items()) if loop.tools.can_run(item)]
        counted = [index for index, item in runnable if loop.tools.counts(item)]
        return {index for index, _ in runnable} - set(counted[limit:])


def _needs_client(item: Item) -> bool:
    """Return whether only the client can answer `item`, and must do so before the model goes on."""
    if item["type"] == "mcp_approval_request":
        return True
    return "call_id" in item and not item.get("async") and item.get("status") != "incomplete"
