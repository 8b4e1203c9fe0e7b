"""Parsers that open the items of server tools, and the executor of a tool whose calls ask for approval first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from responses_app.dialects.base import OutputParser
from responses_app.dialects.parser_filter import ParserFilter
from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import (
    Arguments,
    Call,
    CodeCall,
    Delta,
    EndItem,
    McpApprovalRequest,
    OpenedWhenComplete,
    OutputProblem,
)
from responses_app.protocol.output_problems import ProblemItem
from responses_app.runs.server_tools.call_limit import excess_call
from responses_app.tools.base import Json, ToolExecutor, ToolOffer
from responses_app.tools.code_interpreter.functions import CODE_KEY
from responses_app.tools.composite import CompositeExecutor, CompositeOffer
from responses_app.tools.declaration import ServerTool, dump
from responses_app.tools.functions.custom_input import InputUnwrapper


class ServerCallParser(ParserFilter):
    """Parser that turns calls of server tools into items of their families instead of function calls.

    The code of a code interpreter call is streamed, without the JSON around the code. A search, and a request for an approval, opens
    when the arguments are complete: the opening delta has the arguments. Behind `calls_left` calls a call becomes an output problem.
    """

    def __init__(self, parser: OutputParser, offer: ToolOffer, calls_left: int | None = None) -> None:
        super().__init__(parser)
        self._offer, self._calls_left = offer, calls_left
        self._buffered: _UnopenedCall | None = None
        self._code: InputUnwrapper | None = None

    def _passes(self, delta: Delta) -> bool:
        return delta.__class__ is not Call and self._buffered is None and self._code is None

    def _filter(self, deltas: list[Delta]) -> list[Delta]:
        return [one for delta in deltas for one in self._map(delta)]

    def _flush(self) -> list[Delta]:
        return self._end_call()

    def _map(self, delta: Delta) -> list[Delta]:
        if isinstance(delta, Arguments):
            return self._map_arguments(delta)
        if isinstance(delta, OutputProblem):
            # The item of a buffered call is not open yet.
            return [delta if self._buffered is None else replace(delta, item=self._buffered.problem_item)]
        ended = self._end_call()
        if isinstance(delta, Call):
            return [*ended, *self._begin_call(delta)]
        # The request for an approval is a whole item, and a problem is none, so the end of the call is no event of its own.
        is_whole = isinstance(delta, EndItem) and any(isinstance(one, McpApprovalRequest | OutputProblem) for one in ended)
        return ended if is_whole else [*ended, delta]

    def _map_arguments(self, delta: Arguments) -> list[Delta]:
        if self._buffered is not None:
            self._buffered.texts.append(delta.text)
            return []
        return [delta] if self._code is None else _code_deltas(self._code.read(delta.text))

    def _begin_call(self, delta: Call) -> list[Delta]:
        opening = self._offer.opening(delta.name)
        is_call = opening is not None and not isinstance(opening, McpApprovalRequest)
        if is_call and self._calls_left == 0:
            self._buffered = _UnopenedCall(delta.name, None, [])
            return []
        if is_call and self._calls_left is not None:
            self._calls_left -= 1
        if isinstance(opening, OpenedWhenComplete):
            is_raw_code = isinstance(opening, McpApprovalRequest) and delta.kind == "custom"
            self._buffered = _UnopenedCall(delta.name, opening, [], is_raw_code=is_raw_code)
            return []
        if isinstance(opening, CodeCall) and delta.kind == "function":
            self._code = InputUnwrapper(CODE_KEY)
        return [opening or delta]

    def _end_call(self) -> list[Delta]:
        """Return the opening of the buffered call, or the rest of the code."""
        buffered, code, self._buffered, self._code = self._buffered, self._code, None, None
        if buffered is not None:
            return [buffered.end("".join(buffered.texts) or ("" if buffered.is_raw_code else "{}"))]
        return [] if code is None else _code_deltas(code.flush())


@dataclass(slots=True)
class _UnopenedCall:
    """Call whose item opens when the arguments are complete, with the arguments so far. Without `opening` no item opens.

    `is_raw_code` means code instead of JSON, which becomes JSON.
    """

    function: str
    opening: OpenedWhenComplete | None
    texts: list[str]
    is_raw_code: bool = False

    @property
    def problem_item(self) -> ProblemItem:
        """Item of a problem inside of the call."""
        return "none" if self.opening is None else "next"

    def end(self, arguments: str) -> Delta:
        """Return the delta of the complete call."""
        if self.is_raw_code:
            arguments = dump({CODE_KEY: arguments})
        return excess_call(self.function, arguments) if self.opening is None else self.opening.with_arguments(arguments)


def _code_deltas(text: str) -> list[Delta]:
    return [Arguments(text)] if text else []


class OpeningParser:
    """Parser of the round before the first generation: the deltas open the items that the server runs."""

    reasoning_tokens, unread_tokens, stop_sequence = 0, 0, None
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


class AskingOffer(CompositeOffer):
    """Offer of a server tool whose calls open as requests for approval with the server label `label`."""

    def __init__(self, label: str, inner: CompositeOffer) -> None:
        super().__init__([inner])
        self._label = label

    def opening(self, function: str) -> Delta | None:
        """Return the request for an approval; None for functions of other tools or of the client."""
        return None if super().opening(function) is None else McpApprovalRequest(self._label, function, "")


class AskingExecutor(CompositeExecutor):
    """Executor of a server tool, a `ToolExecutor`. Calls run in the response whose input approves the calls."""

    def __init__(self, tool: ServerTool, inner: ToolExecutor) -> None:
        super().__init__([inner])
        self._tool = tool

    def offer(self, items: Sequence[Json]) -> AskingOffer:
        """Return the offer of the tool."""
        return AskingOffer(self._tool.approval_label, super().offer(items))

    def openings(self, items: Sequence[Json]) -> list[Delta]:
        """Return the openings of the approved calls, as if the model wrote the calls now."""
        calls = [
            delta
            for request in self._tool.approved_requests(items)
            for delta in (Call(request["name"]), Arguments(request["arguments"]), EndItem())
        ]
        return ServerCallParser(OpeningParser(calls), super().offer(items)).finish()
