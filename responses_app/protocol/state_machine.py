"""The state machine of the output: deltas in, events of items out, not yet numbered.

Several items may be open. The parser writes to the current item, the last one that opened, and within it to at most one open
part. `hear(piece)` looks the pair (type of the piece, type of the current item) up in `TABLE`. An empty cell is a bug of the
caller and raises GrammarError before anything has changed::

                                 nothing  message  reasoning  client's call  listing  mcp call  code   search
    Text Refusal                 speak    speak    speak      speak          speak    speak     speak  speak
    Reasoning Summary            speak    speak    speak      speak          speak    speak     speak  speak
    Call McpList McpCall         anew     anew     anew       anew           anew     anew      anew   anew
    CodeCall WebSearch           anew     anew     anew       anew           anew     anew      anew   anew
    FileSearch                   ask      ask      ask        ask            ask      ask       ask    ask
    Approval Compaction          alone    alone    alone      alone          alone    alone     alone  alone
    ClientCall                   alone    alone    alone      alone          alone    alone     alone  alone
    Break                        leave    leave    leave      leave          leave    leave     leave  leave
    Part                         idle     on       on         idle           on       on        on     on
    Annotation                            on
    Arguments                                                 on                      on        on
    Interpreting                                                                                on
    Searching                                                                                          on
    McpTools McpResult                                                       end      end
    CodeResult WebResult FileResult                                                             end    end

speak: the current item takes the text if it accepts it; else (other family, other phase, a summary after raw text) anew.
anew: leave the current item, open another one. ask: the same, and the search keeps its queries for the end.
alone: as anew, but the new item is whole from the start and closes at once. on: the current item moves on.
end: the current item ends with its result. idle: nothing happens.
leave: the current item closes, complete; or, if the server runs its tool, ends its arguments and stays open without being current.

`ForItem` addresses any open item by its output index, for the cells `on` and `end` of its family. Ids and output indexes are
given when an item opens and never change. An ending of the response closes all open items, in the order of their indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from responses_app.protocol import events, items, open_calls
from responses_app.protocol.content_parts import OpenTextPart
from responses_app.protocol.deltas import (
    Annotation,
    Arguments,
    Call,
    ClientCall,
    CodeCall,
    CodeResult,
    CodeStarted,
    Compaction,
    Delta,
    EndItem,
    EndPart,
    FileResult,
    FileSearch,
    ForItem,
    Json,
    McpApprovalRequest,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    ReasoningDelta,
    RefusalDelta,
    SearchStarted,
    SummaryDelta,
    TextDelta,
    WebResult,
    WebSearch,
)
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items import BIRTHS, Item
from responses_app.protocol.open_items import TYPES, Encryptor, MessageItem, OpenItem, PartedItem, ReasoningItem, TextualDelta


class OutputStateMachine:
    """The items of one response: the closed ones, the open ones, and which of these is current."""

    __slots__ = ("_closed", "_held", "_index", "_kind", "_mint", "_open", "_pending", "_seal", "garbled")

    def __init__(self, mint: IdFactory, encrypt: Encryptor | None = None) -> None:
        self._mint = mint
        self._seal = encrypt
        self._index = 0
        # The current item, an Opened; of which class, the column of the table says.
        self._open: Any = None
        self._kind = ""
        # Open items behind the current one, by output index: calls whose results are not there yet.
        self._pending: dict[int, OpenItem] = {}
        self._closed: dict[int, Item] = {}
        self._held: TextDelta | None = None
        self.garbled = False

    @property
    def items(self) -> list[Item]:
        """The closed items, in the order of their output indexes."""
        return [self._closed[index] for index in sorted(self._closed)]

    @property
    def pending_tool(self) -> str | None:
        """The type of the first open item whose tool the server runs: its result is not there yet."""
        return next((item.kind for item in self._all_open() if item.runs_on_server), None)

    @property
    def pending_calls(self) -> list[tuple[int, Item]]:
        """Open items whose tool the server runs: the output index, and the item with the arguments so far."""
        return [(item.index, _with_arguments(item)) for item in self._all_open() if item.runs_on_server]

    def apply(self, piece: Delta) -> list[Event]:
        """What this piece makes of the open item; may be nothing. Raises GrammarError if it cannot stand here."""
        action = TABLE.get(piece.__class__, _NOWHERE).get(self._kind)
        if action is None:
            raise ProtocolError(f"{piece.__class__.__name__} cannot stand in {self._kind or 'no item'}")
        return action(self, piece)

    def close(self, status: str) -> list[Event]:
        """Close all open items with this status; a call that does not parse is `incomplete`, and `garbled` says so."""
        self._held = None
        return [event for item in self._all_open() for event in self._close_with(item, status)]

    def restore(self, closed: Mapping[int, Item], rest: Sequence[OpenItem], count: int) -> None:
        """Continue with these closed and open items, after `count` items that were opened. The last one is current if open."""
        self._closed, self._index = dict(closed), count
        self._pending = {item.index: item for item in rest}
        self._open = self._pending.pop(count - 1, None)
        self._kind = "" if self._open is None else self._open.kind
        self.garbled = any(item.get("status") == "incomplete" for item in closed.values())

    def empty_message(self) -> list[Event]:
        """One message with one empty text: the answer of a model that said nothing at all (checklist 110)."""
        message = MessageItem(items.message(self._mint, None), self._index)
        return self._begin(message) + message.empty_message("output_text") + self._close_with(message, "completed")

    def _all_open(self) -> list[OpenItem]:
        current = [] if self._open is None else [self._open]
        return [self._pending[index] for index in sorted(self._pending)] + current

    def _close_with(self, item: OpenItem, status: str) -> list[Event]:
        told = item.close(status)
        self.garbled |= item.body.get("status", status) != status
        self._store_closed(item)
        return told

    def _open_at(self, index: int) -> Any:
        if self._open is not None and self._open.index == index:
            return self._open
        return self._pending.get(index)

    # What the cells of the table do

    def _text(self, piece: TextDelta) -> list[Event]:
        # The way of nearly every piece, without detours: more text for the open text.
        item = self._open
        if piece.text and self._held is None and item.part.__class__ is OpenTextPart and item.phase == piece.phase:
            return [item.part.append(piece.text, piece.logprobs)]
        return self._speak(piece)

    def _speak(self, piece: TextualDelta) -> list[Event]:
        if not piece.text:
            return self._hold_logprobs(piece)
        logprobs = piece.logprobs if isinstance(piece, TextDelta) else ()
        if self._held is not None:
            logprobs = self._take_logprobs(piece, logprobs)
        item = self._open
        if item is not None and item.accepts(piece):
            more: list[Event] = item.append(TYPES[piece.__class__], piece.text, logprobs)
            return more
        told = self._open_item(piece)
        more = self._open.append(TYPES[piece.__class__], piece.text, logprobs)
        return told + more

    def _hold_logprobs(self, piece: TextualDelta) -> list[Event]:
        # Tokens without text of their own (half a character) have log-probabilities: an open text takes them at once.
        if not isinstance(piece, TextDelta) or not piece.logprobs:
            return []
        item = self._open
        if isinstance(item, MessageItem) and item.accepts(piece) and isinstance(item.part, OpenTextPart):
            return [item.part.append("", piece.logprobs)]
        self._held = TextDelta("", self._take_logprobs(piece, piece.logprobs), piece.phase)
        return []

    def _take_logprobs(self, piece: TextualDelta, logprobs: Sequence[Json]) -> Sequence[Json]:
        held, self._held = self._held, None
        if held is None or not isinstance(piece, TextDelta) or held.phase != piece.phase:
            return logprobs
        return [*held.logprobs, *logprobs]

    def _open_item(self, piece: Delta) -> list[Event]:
        told = self._close_item()
        body = BIRTHS[piece.__class__](self._mint, piece)
        item = open_calls.FAMILIES[body["type"]](body, self._index)
        if isinstance(item, ReasoningItem):
            item.seal = self._seal
        return told + self._begin(item)

    def _open_search(self, piece: FileSearch) -> list[Event]:
        told = self._open_item(piece)
        self._open.asked = {"queries": list(piece.queries)}
        return told

    def _begin(self, item: OpenItem) -> list[Event]:
        self._open, self._kind = item, item.kind
        self._index += 1
        return item.open()

    def _emit_whole_item(self, piece: Delta) -> list[Event]:
        told = self._open_item(piece)
        return told + self._close_with(self._open, "completed")

    def _close_item(self, _piece: EndItem | None = None) -> list[Event]:
        self._held = None
        item = self._open
        if item is None:
            return []
        if not item.runs_on_server:
            return self._close_with(item, "completed")
        self._pending[item.index] = item
        self._open, self._kind = None, ""
        told: list[Event] = item.wait_for_result()
        return told

    def _address(self, piece: ForItem) -> list[Event]:
        item = self._open_at(piece.output_index)
        if item is None:
            raise ProtocolError(f"no item is open at output_index {piece.output_index}")
        move = STEPS.get(piece.delta.__class__, _NO_STEPS).get(item.kind)
        if move is not None:
            return move(item, piece.delta)
        finish = RESULTS.get(piece.delta.__class__, _NO_STEPS).get(item.kind)
        if finish is None:
            raise ProtocolError(f"{piece.delta.__class__.__name__} cannot address {item.kind}")
        return self._finish(item, finish, piece.delta)

    def _finish(self, item: Any, finish: Step, piece: Delta) -> list[Event]:
        told = finish(item, piece)
        self._store_closed(item)
        return told

    def _store_closed(self, item: OpenItem) -> None:
        self._closed[item.index] = item.body
        if item is self._open:
            self._open, self._kind = None, ""
        else:
            del self._pending[item.index]


def _with_arguments(item: OpenItem) -> Item:
    return {**item.body, item.channel.key: "".join(item.said)} if isinstance(item, open_calls.StreamedCall) else item.body


Action: TypeAlias = Callable[[OutputStateMachine, Any], list[Event]]
Step: TypeAlias = Callable[[Any, Any], list[Event]]


def _idle(_output: OutputStateMachine, _piece: Delta) -> list[Event]:
    return []


def _on(move: Step) -> Action:
    def action(output: OutputStateMachine, piece: Delta) -> list[Event]:
        return move(output._open, piece)

    return action


def _ends(finish: Step) -> Action:
    def action(output: OutputStateMachine, piece: Delta) -> list[Event]:
        return output._finish(output._open, finish, piece)

    return action


def _anywhere(action: Action) -> dict[str, Action]:
    return dict.fromkeys(("", *open_calls.FAMILIES), action)


def _end_arguments(item: OpenItem, _piece: EndPart) -> list[Event]:
    return item.wait_for_result()


_NO_STEPS: Final[dict[str, Step]] = {}
# The cells `on`: the item stays open.
STEPS: Final[dict[type[Delta], dict[str, Step]]] = {
    EndPart: {
        **dict.fromkeys(("message", "reasoning"), PartedItem.close_part),
        **{kind: _end_arguments for kind, family in open_calls.FAMILIES.items() if family.runs_on_server},
    },
    Annotation: {"message": MessageItem.annotate},
    Arguments: dict.fromkeys(events.CHANNELS, open_calls.StreamedCall.append),
    CodeStarted: {"code_interpreter_call": open_calls.CodeInterpreterCall.mark_running},
    SearchStarted: dict.fromkeys(("web_search_call", "file_search_call"), open_calls.SearchCall.mark_searching),
}
# The cells `end`: the item closes with its result.
RESULTS: Final[dict[type[Delta], dict[str, Step]]] = {
    McpTools: {"mcp_list_tools": open_calls.McpListToolsItem.finish},
    McpResult: {"mcp_call": open_calls.McpToolCall.finish},
    CodeResult: {"code_interpreter_call": open_calls.CodeInterpreterCall.finish},
    WebResult: {"web_search_call": open_calls.SearchCall.finish},
    FileResult: {"file_search_call": open_calls.SearchCall.finish},
}
_NOWHERE: Final[dict[str, Action]] = {}
TABLE: Final[dict[type[Delta], dict[str, Action]]] = {
    TextDelta: {**_anywhere(OutputStateMachine._speak), "message": OutputStateMachine._text},
    RefusalDelta: _anywhere(OutputStateMachine._speak),
    ReasoningDelta: _anywhere(OutputStateMachine._speak),
    SummaryDelta: _anywhere(OutputStateMachine._speak),
    Call: _anywhere(OutputStateMachine._open_item),
    ClientCall: _anywhere(OutputStateMachine._emit_whole_item),
    McpList: _anywhere(OutputStateMachine._open_item),
    McpCall: _anywhere(OutputStateMachine._open_item),
    CodeCall: _anywhere(OutputStateMachine._open_item),
    WebSearch: _anywhere(OutputStateMachine._open_item),
    FileSearch: _anywhere(OutputStateMachine._open_search),
    McpApprovalRequest: _anywhere(OutputStateMachine._emit_whole_item),
    Compaction: _anywhere(OutputStateMachine._emit_whole_item),
    EndItem: _anywhere(OutputStateMachine._close_item),
    ForItem: _anywhere(OutputStateMachine._address),
    **{piece: {kind: _on(move) for kind, move in row.items()} for piece, row in STEPS.items()},
    **{piece: {kind: _ends(finish) for kind, finish in row.items()} for piece, row in RESULTS.items()},
}
TABLE[EndPart].update(dict.fromkeys(("", "function_call", "custom_tool_call"), _idle))
