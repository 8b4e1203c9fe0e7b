"""Rounds of a run: a round has a prompt, a generation and a parser."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import Finish
from responses_app.observability import events
from responses_app.observability.records import CANCELLED, EndedRound, current_trace
from responses_app.protocol.deltas import Delta, EndItem
from responses_app.protocol.items.base import Item
from responses_app.runs.execute.calls.scheduler import CallScheduler, CheckResult
from responses_app.runs.execute.generation import Generation, NotResumable
from responses_app.runs.execute.output import ResponseOutput, RoundOutput
from responses_app.runs.execute.response_limits import ResponseLimits
from responses_app.runs.execute.response_object import usage
from responses_app.runs.execute.usage import UsageCounter
from responses_app.store.log.token_log import RoundEnd, RoundStart
from responses_app.tools.base import ToolExecutor
from responses_app.tools.limits import ToolLimits


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
        self.generation, self._parser = generation, parser
        end = end or RoundEnd(prompt)
        self._counter = UsageCounter(end.prompt, end.cached, len(generation.tokens))

    @property
    def usage(self) -> UsageCounter:
        """Token counts of the round so far."""
        self._counter.reasoning = self._parser.reasoning_tokens
        return self._counter

    @property
    def stop_sequence(self) -> str | None:
        """Stop sequence of the request that has ended the text."""
        return self._parser.stop_sequence

    async def generate(self, output: RoundOutput, calls: CallScheduler | None = None) -> Finish | None:
        """Generate to the end and return how the engine ended. The last deltas are added to `output` but not published.

        Calls of tools begin when complete. Raises EngineUnavailable, NotResumable, RequestRejected, and DatabaseError if `output`
        cannot be written.
        """
        if not self._generates:
            return "stop"
        parser, counter = self._parser, self._counter
        async with (
            aclosing(self.generation.chunks()) as chunks,
            aclosing(chunks if calls is None else calls.merge(chunks)) as merged,
        ):
            async for chunk in merged:
                # From the parser to `publish` nothing waits: a cancellation leaves no sequence number out.
                deltas = parser.feed(chunk)
                if parser.done and (unread := parser.unread_tokens):
                    # The engine may be ahead: how far is chance.
                    chunk = chunk.without_last(unread)
                counter.count(chunk)
                output.add(chunk, deltas)
                finish = "stop" if parser.done else chunk.finish
                if finish is not None:
                    # Leaving the loop stops the engine.
                    return finish
                if calls is not None and calls.has_new_calls:
                    await calls.begin()
                else:
                    output.publish()
                if output.is_full:
                    await output.wait_room()
        return None

    def finish_parser(self) -> list[Delta]:
        """Finish the parser and return the deltas that the parser held back; nothing if the round has ended."""
        if self.has_ended:
            return []
        self.has_ended = True
        return self._parser.finish()


NextRound: TypeAlias = Callable[[int, Sequence[Item], int], Awaitable[Round]]


@dataclass(frozen=True, slots=True)
class ToolLoop:
    """Tools of a run, and the function that creates the next round from the results of tools.

    `next_round` makes a round from its number, the output so far and the output tokens so far, and behind the limit of rounds the
    last one, without calls. A response with `prepares` has a round without generation before the others.
    """

    tools: ToolExecutor
    next_round: NextRound
    limits: ToolLimits
    prepares: bool = False
    max_output_tokens: int | None = None
    # Parts of results that items show: the `include` of the request.
    include: Collection[str] = ()
    check: CheckResult | None = None


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """Position of a run: number of the current round, first item of that round, usage of the earlier rounds.

    `begun` are the output indexes of the calls that have begun in the current round.
    """

    number: int = 0
    first_item: int = 0
    usage: UsageCounter = field(default_factory=UsageCounter)
    begun: frozenset[int] = frozenset()


class Rounds:
    """Rounds of a run, in sequence.

    A round may contain calls that the server runs. Each call begins when its arguments are complete. When the generation has ended
    and all results are there, the next round begins, until the model is done, a client must answer, or a limit is reached. Without
    `loop` there is one round. `current` is the round under way.
    """

    def __init__(
        self, first: Round, output: ResponseOutput, loop: ToolLoop | None = None, progress: RoundProgress | None = None
    ) -> None:
        progress = progress or RoundProgress()
        self.current, self._output, self._loop = first, output, loop
        self._number, self._first_item = progress.number, progress.first_item
        # Sum over the rounds that are over, and over generations beside the rounds.
        self._earlier = progress.usage
        self._calls = (
            None if loop is None else CallScheduler(output, loop.tools, loop.limits, loop.include, progress.begun, loop.check)
        )

    async def run(self) -> Finish | None:
        """Generate until the model is done, or up to `stop_behind_calls`. Return how the engine ended; the last events wait in the output.

        Raises ApiError if the next round cannot be planned, and the errors of `Round.generate`.
        """
        if self._loop is None or self._calls is None:
            return await self._generate(None)
        try:
            return await self._run_rounds(self._loop, self._calls)
        finally:
            await self._calls.close()

    def stop_behind_calls(self) -> bool:
        """End the generation now, and the rounds when the calls under way have ended. Return False, and do nothing, without such calls."""
        return self._calls is not None and self._calls.stop_generation()

    @property
    def is_stopped(self) -> bool:
        """Return whether the rounds end because of `stop_behind_calls`."""
        return self._calls is not None and self._calls.is_stopped

    async def _run_rounds(self, loop: ToolLoop, calls: CallScheduler) -> Finish | None:
        while True:
            # An earlier owner of the run may have left calls.
            await calls.begin()
            finish = await self._generate(calls)
            if finish != "stop" or not any(map(loop.tools.can_run, self._round_items())):
                return finish
            self._end_generation()
            await calls.finish()
            if calls.is_stopped or any(map(_needs_client, self._round_items())):
                return finish
            if loop.max_output_tokens is not None and self.total.output >= loop.max_output_tokens:
                return "length"
            await self._begin_next(loop)

    async def close(self) -> None:
        """Close the connections of the tools."""
        if self._loop is not None:
            await self._loop.tools.close()

    def finish_parser(self) -> None:
        """Write the deltas that the parser holds back, as before an early ending."""
        self._output.write(self.current.finish_parser())

    async def save_end(self) -> None:
        """Close the open item and make the end of the generation durable, once. Raises DatabaseError."""
        self._end_generation()
        await self._output.publish_and_wait()

    def _end_generation(self) -> None:
        """Close the open item, and save the end of the generation with the next append, once."""
        if self.current.is_saved:
            return
        self.current.is_saved = True
        counter = self.current.usage
        self._output.write([EndItem()])
        self._output.publisher.unsaved.append(RoundEnd(counter.prompt, counter.cached))

    def add_output(self, tokens: int) -> None:
        """Count output tokens of a generation beside the rounds."""
        self._earlier.output += tokens

    @property
    def context_length(self) -> int:
        """Tokens of the last prompt and of the answer to the prompt."""
        return self.current.usage.prompt + self.current.usage.output

    def limit_reached(self, limits: ResponseLimits) -> Mapping[str, Any]:
        """Return name and value of the limit at which the generation has ended."""
        generation = self.current.generation
        most = generation.request.sampling.max_tokens
        return limits.at_output(self.total.output, most, self.context_length, generation.context_window)

    @property
    def cached_in_single_round(self) -> int | None:
        """Prompt tokens found in the prefix cache; None with several rounds."""
        return self.current.usage.cached if self._number == 0 else None

    @property
    def total(self) -> UsageCounter:
        """Token counts of all rounds together."""
        return self._earlier.plus(self.current.usage)

    def usage(self) -> dict[str, Any]:
        """Return the usage object: input, cached, output and reasoning tokens are summed over the rounds."""
        total = self.total
        return usage(total.prompt, total.cached, total.output, total.reasoning)

    async def _generate(self, calls: CallScheduler | None) -> Finish | None:
        if self.current.has_ended:
            return "stop"
        began_ns, finish = time.time_ns(), None
        reported: str | None = None
        try:
            finish = reported = await self.current.generate(self._output, calls)
        except asyncio.CancelledError:
            reported = CANCELLED
            raise
        except NotResumable:
            if calls is None or not self._may_end_here():
                raise
            calls.cut_off, finish = self._output.writer.output.current_index, "stop"
            reported = finish
        finally:
            self._output.publisher.note_generation(self.total.generation_ms)
            self._report_round(began_ns, reported)
        if calls is not None and (finish == "length" or calls.is_stopped):
            # The tools run already, so the model's last words wait for the results.
            await calls.finish()
        self.finish_parser()
        return finish

    def _report_round(self, began_ns: int, finish: str | None) -> None:
        """Report the round to the observers, unless it only runs tools before the first generation."""
        trace, counter = current_trace.get(), self.current.usage
        if trace and (counter.output or finish in (None, CANCELLED)):
            tokens = usage(counter.prompt, counter.cached, counter.output, counter.reasoning)
            events.round_ended(EndedRound(trace, began_ns, self._output.writer.response, tokens, finish))

    def _may_end_here(self) -> bool:
        """Return whether the round may end where the generation was cut: behind calls of the server, or inside of such a call."""
        output = self._output.writer.output
        items, current = output.all_items, output.current_index
        last = items[self._first_item :] if current is None else [items[current]]
        return self._loop is not None and any(map(self._loop.tools.can_run, last))

    async def _begin_next(self, loop: ToolLoop) -> None:
        number, items = self._number + 1, self._output.writer.output.prompt_items
        following = await loop.next_round(number, items, self.total.output)
        self._earlier = self.total
        self.current, self._number, self._first_item = following, number, len(items)
        self._output.publisher.unsaved.append(RoundStart(following.generation.request.prompt))
        if loop.prepares and number == 1:
            self._output.publisher.restart_first_token()

    def _round_items(self) -> list[Item]:
        """Return the items of the current round."""
        return self._output.writer.output.all_items[self._first_item :]


def _needs_client(item: Item) -> bool:
    """Return whether only the client can answer `item`, and must do so before the model goes on."""
    if item["type"] == "mcp_approval_request":
        return True
    return "call_id" in item and not item.get("async") and item.get("status") != "incomplete"
