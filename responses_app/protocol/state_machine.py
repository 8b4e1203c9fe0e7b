"""The output under construction: pieces in, events of items out, not yet numbered.

There is at most one open item, and within it at most one open part. `hear(piece)` looks the pair (type of the piece, type of
the open item) up in `TABLE`; an empty cell is our bug and raises GrammarError before anything has changed::

                                 nothing  message  reasoning  client's call  listing  mcp call  code   search
    Text Refusal                 speak    speak    speak      speak
    Reasoning Summary            speak    speak    speak      speak
    Call McpList McpCall         anew     anew     anew       anew
    CodeCall WebSearch           anew     anew     anew       anew
    FileSearch                   ask      ask      ask        ask
    Approval Compaction          alone    alone    alone      alone
    ClientCall                   alone    alone    alone      alone
    Break                        leave    leave    leave      leave
    Part                         idle     on       on         idle                    on
    Annotation                            on
    Arguments                                                 on                      on        on
    Interpreting                                                                                on
    Searching                                                                                          on
    McpTools McpResult                                                       end      end
    CodeResult WebResult FileResult                                                             end    end

speak: the open item says it if it is one that holds it; else (other family, other phase, a summary after raw text) anew.
anew: the open item closes, complete; another one opens. ask: the same, and the search keeps its queries for the end.
alone: as anew, but the new item is whole from the start and closes at once. leave: the open item closes, complete.
on: the open item moves on. end: the open item ends with its result. idle: nothing happens.

Items of the model (message, reasoning, the client's calls) end when anything else begins. Items of a tool (MCP, code, searches)
end only with their own result: whoever talks while a tool is at work is wrong, hence the empty cells of their columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    """The items of one response: the closed ones in order, and the open one."""

    __slots__ = ("_held", "_index", "_kind", "_mint", "_open", "_seal", "garbled", "items")

    def __init__(self, mint: IdFactory, encrypt: Encryptor | None = None) -> None:
        self._mint = mint
        self._seal = encrypt
        self._index = 0
        # An Opened; of which class, the column of the table says.
        self._open: Any = None
        self._kind = ""
        self._held: TextDelta | None = None
        self.garbled = False
        self.items: list[Item] = []

    @property
    def pending_tool(self) -> str | None:
        """The type of the tool's item that is open and has no result yet."""
        return None if self._kind in TABLE[EndItem] else self._kind

    def apply(self, piece: Delta) -> list[Event]:
        """What this piece makes of the open item; may be nothing. Raises GrammarError if it cannot stand here."""
        action = TABLE.get(piece.__class__, _NOWHERE).get(self._kind)
        if action is None:
            raise ProtocolError(f"{piece.__class__.__name__} cannot stand in {self._kind or 'no item'}")
        return action(self, piece)

    def close(self, status: str) -> list[Event]:
        """The open item, if any, closes with this status; a call that does not parse is `incomplete`, and `garbled` says so."""
        self._held = None
        if self._open is None:
            return []
        told: list[Event] = self._open.close(status)
        self.garbled |= self._open.body.get("status", status) != status
        self._store_closed(self._open)
        return told

    def restore(self, closed: Sequence[Item], rest: OpenItem | None, count: int) -> None:
        """Begin with these closed items, perhaps with an open one, after so many that were opened."""
        self.items, self._open, self._index = list(closed), rest, count
        self._kind = "" if rest is None else rest.kind

    def empty_message(self) -> list[Event]:
        """One message with one empty text: the answer of a model that said nothing at all (checklist 110)."""
        message = MessageItem(items.message(self._mint, None), self._index)
        return self._begin(message) + message.empty_message("output_text") + self.close("completed")

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
        told = self.close("completed")
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
        return self._open_item(piece) + self.close("completed")

    def _close_item(self, _piece: EndItem) -> list[Event]:
        return self.close("completed")

    def _store_closed(self, item: OpenItem) -> None:
        self.items.append(item.body)
        self._open, self._kind = None, ""


Action: TypeAlias = Callable[[OutputStateMachine, Any], list[Event]]


def _idle(_output: OutputStateMachine, _piece: Delta) -> list[Event]:
    return []


def _on(move: Callable[[Any, Any], list[Event]]) -> Action:
    def action(output: OutputStateMachine, piece: Delta) -> list[Event]:
        return move(output._open, piece)

    return action


def _ends(finish: Callable[[Any, Any], list[Event]]) -> Action:
    def action(output: OutputStateMachine, piece: Delta) -> list[Event]:
        item: Any = output._open
        told = finish(item, piece)
        output._store_closed(item)
        return told

    return action


def _anywhere(action: Action) -> dict[str, Action]:
    # The columns that anything may end: no item, and the items of the model.
    return dict.fromkeys(("", "message", "reasoning", "function_call", "custom_tool_call"), action)


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
    EndPart: {
        **_anywhere(_idle),
        "message": _on(PartedItem.close_part),
        "reasoning": _on(PartedItem.close_part),
        "mcp_call": _on(open_calls.McpToolCall.close_part),
    },
    Annotation: {"message": _on(MessageItem.annotate)},
    Arguments: dict.fromkeys(events.CHANNELS, _on(open_calls.StreamedCall.append)),
    CodeStarted: {"code_interpreter_call": _on(open_calls.CodeInterpreterCall.mark_running)},
    SearchStarted: dict.fromkeys(("web_search_call", "file_search_call"), _on(open_calls.SearchCall.mark_searching)),
    McpTools: {"mcp_list_tools": _ends(open_calls.McpListToolsItem.finish)},
    McpResult: {"mcp_call": _ends(open_calls.McpToolCall.finish)},
    CodeResult: {"code_interpreter_call": _ends(open_calls.CodeInterpreterCall.finish)},
    WebResult: {"web_search_call": _ends(open_calls.SearchCall.finish)},
    FileResult: {"file_search_call": _ends(open_calls.SearchCall.finish)},
}
