"""Calls of tools that the server runs: found in the output of the model, executed side by side."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import orjson

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.dialects.tools import builtin
from responses_app.dialects.tools.custom_input import InputUnwrapper
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import (
    Arguments,
    Call,
    ClientCall,
    CodeCall,
    Delta,
    EndItem,
    FileSearch,
    ForItem,
    McpApprovalRequest,
    OutputProblem,
    WebSearch,
)
from responses_app.tools.base import ToolExecutor, ToolOffer

logger = logging.getLogger("responses.tools")

# A cancelled tool gets this long to clean up.
STOP_LIMIT_S = 1.0
UNKNOWN_OUTCOME = "The server that ran this call has gone, and the outcome is unknown."


@dataclass(frozen=True, slots=True)
class PendingCall:
    """Call without a result: the output index, and the item with the arguments."""

    index: int
    item: Mapping[str, Any]


class ServerCallParser(ParserFilter):
    """Parser that turns calls of server tools into items of their families instead of function calls.

    The code of a code interpreter call is streamed, without the JSON around the code. A search, and a request for an approval, opens
    when the arguments are complete: the opening delta has the arguments.
    Behind a server call the deltas that end an item wait for the next delta. So the end of a round with server calls always has an
    event, and the log contains that end before the calls run.
    """

    _ITEM_ENDS = (EndItem, ClientCall, McpApprovalRequest, WebSearch, FileSearch, OutputProblem)

    def __init__(self, parser: OutputParser, offer: ToolOffer) -> None:
        super().__init__(parser)
        self._offer = offer
        self._has_server_calls = False
        self._held: list[Delta] = []
        self._buffered: _UnopenedCall | None = None
        self._code: InputUnwrapper | None = None

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        mapped = [one for delta in deltas for one in self._map(delta)]
        return self._hold_item_ends(mapped) if self._has_server_calls and mapped else mapped

    def _flush(self) -> list[Delta]:
        held, self._held = self._held, []
        return [*held, *self._end_call()]

    def _map(self, delta: Delta) -> list[Delta]:
        if isinstance(delta, Arguments):
            return self._map_arguments(delta)
        if isinstance(delta, OutputProblem):
            # The item of a buffered call is not open yet.
            return [delta if self._buffered is None else replace(delta, item="next")]
        ended = self._end_call()
        if isinstance(delta, Call):
            return [*ended, *self._begin_call(delta)]
        # The request for an approval is a whole item, so the end of the call is no event of its own.
        is_whole = isinstance(delta, EndItem) and any(isinstance(one, McpApprovalRequest) for one in ended)
        return ended if is_whole else [*ended, delta]

    def _map_arguments(self, delta: Arguments) -> list[Delta]:
        if self._buffered is not None:
            self._buffered.texts.append(delta.text)
            return []
        return [delta] if self._code is None else _code_deltas(self._code.read(delta.text))

    def _begin_call(self, delta: Call) -> list[Delta]:
        opening = self._offer.opening(delta.name)
        self._has_server_calls |= opening is not None and not isinstance(opening, McpApprovalRequest)
        if isinstance(opening, McpApprovalRequest | WebSearch | FileSearch):
            self._buffered = _UnopenedCall(opening, [])
            return []
        if isinstance(opening, CodeCall) and delta.kind == "function":
            self._code = InputUnwrapper(builtin.CODE_KEY)
        return [opening or delta]

    def _end_call(self) -> list[Delta]:
        """Return the opening of the buffered call, or the rest of the code."""
        buffered, code, self._buffered, self._code = self._buffered, self._code, None, None
        if buffered is not None:
            return [replace(buffered.opening, arguments="".join(buffered.texts) or "{}")]
        return [] if code is None else _code_deltas(code.flush())

    def _hold_item_ends(self, deltas: list[Delta]) -> list[Delta]:
        deltas, self._held = [*self._held, *deltas], []
        while deltas and isinstance(deltas[-1], self._ITEM_ENDS):
            self._held.insert(0, deltas.pop())
        return deltas


@dataclass(slots=True)
class _UnopenedCall:
    """Call whose item opens when the arguments are complete, with the arguments so far."""

    opening: McpApprovalRequest | WebSearch | FileSearch
    texts: list[str]


def _code_deltas(text: str) -> list[Delta]:
    return [Arguments(text)] if text else []


class OpeningParser:
    """Parser of the round before the first generation: its deltas open the items that the server runs."""

    reasoning_tokens = 0
    done = True

    def __init__(self, openings: Sequence[Delta]) -> None:
        self._openings = openings

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return no deltas: nothing is generated."""
        del chunk
        return []

    def finish(self) -> list[Delta]:
        """Return the opening deltas."""
        return list(self._openings)


async def run_calls(calls: Sequence[PendingCall], tools: ToolExecutor, parallel: int) -> AsyncGenerator[ForItem, None]:
    """Run `calls`, up to `parallel` side by side. Yield progress and results when these come.

    Closing the generator cancels the tools that still run.
    """
    deltas: asyncio.Queue[tuple[ForItem, bool]] = asyncio.Queue()
    slots = asyncio.Semaphore(parallel)
    tasks = {asyncio.create_task(_run_call(call, tools, slots, deltas), name=call.item["id"]) for call in calls}
    try:
        running = len(tasks)
        while running:
            delta, is_result = await deltas.get()
            running -= is_result
            yield delta
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=STOP_LIMIT_S)


async def _run_call(
    call: PendingCall, tools: ToolExecutor, slots: asyncio.Semaphore, deltas: asyncio.Queue[tuple[ForItem, bool]]
) -> None:
    """Run `call` when a slot is free; put the progress and the result into `deltas`."""
    async with slots:
        try:
            result = await tools.run(call.item, lambda delta: deltas.put_nowait((ForItem(call.index, delta), False)))
            # A result with numbers beyond 64 bits or too many levels would fail the response when its event is encoded.
            orjson.dumps(asdict(result))
        except (Exception, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            logger.exception("%s: tool failed", call.item["id"])
            result = tools.failure(call.item, f"The tool failed: {type(error).__name__}.")
    deltas.put_nowait((ForItem(call.index, result), True))
