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

from responses_app.grammar import calls, events, items
from responses_app.grammar.errors import GrammarError
from responses_app.grammar.events import Event
from responses_app.grammar.ids import Mint
from responses_app.grammar.items import BIRTHS, Item
from responses_app.grammar.opened import TYPES, Message, Opened, Saying, Seal, Speech, Thought
from responses_app.grammar.parts import TextPart
from responses_app.grammar.pieces import (
    Annotation,
    Approval,
    Arguments,
    Break,
    Call,
    ClientCall,
    CodeCall,
    CodeResult,
    Compaction,
    FileResult,
    FileSearch,
    Interpreting,
    Json,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    Part,
    Piece,
    Reasoning,
    Refusal,
    Searching,
    Summary,
    Text,
    WebResult,
    WebSearch,
)


class Output:
    """The items of one response: the closed ones in order, and the open one."""

    __slots__ = ("_held", "_index", "_kind", "_mint", "_open", "_seal", "garbled", "items")

    def __init__(self, mint: Mint, seal: Seal | None = None) -> None:
        self._mint = mint
        self._seal = seal
        self._index = 0
        # An Opened; of which class, the column of the table says.
        self._open: Any = None
        self._kind = ""
        self._held: Text | None = None
        self.garbled = False
        self.items: list[Item] = []

    @property
    def awaits(self) -> str | None:
        """The type of the tool's item that is open and has no result yet."""
        return None if self._kind in TABLE[Break] else self._kind

    def hear(self, piece: Piece) -> list[Event]:
        """What this piece makes of the open item; may be nothing. Raises GrammarError if it cannot stand here."""
        action = TABLE.get(piece.__class__, _NOWHERE).get(self._kind)
        if action is None:
            raise GrammarError(f"{piece.__class__.__name__} cannot stand in {self._kind or 'no item'}")
        return action(self, piece)

    def close(self, status: str) -> list[Event]:
        """The open item, if any, closes with this status; a call that does not parse is `incomplete`, and `garbled` says so."""
        self._held = None
        if self._open is None:
            return []
        told: list[Event] = self._open.close(status)
        self.garbled |= self._open.body.get("status", status) != status
        self._shelve(self._open)
        return told

    def resume(self, closed: Sequence[Item], rest: Opened | None, count: int) -> None:
        """Begin with these closed items, perhaps with an open one, after so many that were opened."""
        self.items, self._open, self._index = list(closed), rest, count
        self._kind = "" if rest is None else rest.kind

    def hollow(self) -> list[Event]:
        """One message with one empty text: the answer of a model that said nothing at all (checklist 110)."""
        message = Message(items.message(self._mint, None), self._index)
        return self._begin(message) + message.hollow("output_text") + self.close("completed")

    # What the cells of the table do

    def _text(self, piece: Text) -> list[Event]:
        # The way of nearly every piece, without detours: more text for the open text.
        item = self._open
        if piece.text and self._held is None and item.part.__class__ is TextPart and item.phase == piece.phase:
            return [item.part.say(piece.text, piece.logprobs)]
        return self._speak(piece)

    def _speak(self, piece: Saying) -> list[Event]:
        if not piece.text:
            return self._hush(piece)
        logprobs = piece.logprobs if isinstance(piece, Text) else ()
        if self._held is not None:
            logprobs = self._claim(piece, logprobs)
        item = self._open
        if item is not None and item.holds(piece):
            more: list[Event] = item.say(TYPES[piece.__class__], piece.text, logprobs)
            return more
        told = self._anew(piece)
        more = self._open.say(TYPES[piece.__class__], piece.text, logprobs)
        return told + more

    def _hush(self, piece: Saying) -> list[Event]:
        # Tokens without text of their own (half a character) have log-probabilities: an open text takes them at once.
        if not isinstance(piece, Text) or not piece.logprobs:
            return []
        item = self._open
        if isinstance(item, Message) and item.holds(piece) and isinstance(item.part, TextPart):
            return [item.part.say("", piece.logprobs)]
        self._held = Text("", self._claim(piece, piece.logprobs), piece.phase)
        return []

    def _claim(self, piece: Saying, logprobs: Sequence[Json]) -> Sequence[Json]:
        held, self._held = self._held, None
        if held is None or not isinstance(piece, Text) or held.phase != piece.phase:
            return logprobs
        return [*held.logprobs, *logprobs]

    def _anew(self, piece: Piece) -> list[Event]:
        told = self.close("completed")
        body = BIRTHS[piece.__class__](self._mint, piece)
        item = calls.FAMILIES[body["type"]](body, self._index)
        if isinstance(item, Thought):
            item.seal = self._seal
        return told + self._begin(item)

    def _ask(self, piece: FileSearch) -> list[Event]:
        told = self._anew(piece)
        self._open.asked = {"queries": list(piece.queries)}
        return told

    def _begin(self, item: Opened) -> list[Event]:
        self._open, self._kind = item, item.kind
        self._index += 1
        return item.open()

    def _alone(self, piece: Piece) -> list[Event]:
        return self._anew(piece) + self.close("completed")

    def _leave(self, _piece: Break) -> list[Event]:
        return self.close("completed")

    def _shelve(self, item: Opened) -> None:
        self.items.append(item.body)
        self._open, self._kind = None, ""


Action: TypeAlias = Callable[[Output, Any], list[Event]]


def _idle(_output: Output, _piece: Piece) -> list[Event]:
    return []


def _on(move: Callable[[Any, Any], list[Event]]) -> Action:
    def action(output: Output, piece: Piece) -> list[Event]:
        return move(output._open, piece)

    return action


def _ends(finish: Callable[[Any, Any], list[Event]]) -> Action:
    def action(output: Output, piece: Piece) -> list[Event]:
        item: Any = output._open
        told = finish(item, piece)
        output._shelve(item)
        return told

    return action


def _anywhere(action: Action) -> dict[str, Action]:
    # The columns that anything may end: no item, and the items of the model.
    return dict.fromkeys(("", "message", "reasoning", "function_call", "custom_tool_call"), action)


_NOWHERE: Final[dict[str, Action]] = {}
TABLE: Final[dict[type[Piece], dict[str, Action]]] = {
    Text: {**_anywhere(Output._speak), "message": Output._text},
    Refusal: _anywhere(Output._speak),
    Reasoning: _anywhere(Output._speak),
    Summary: _anywhere(Output._speak),
    Call: _anywhere(Output._anew),
    ClientCall: _anywhere(Output._alone),
    McpList: _anywhere(Output._anew),
    McpCall: _anywhere(Output._anew),
    CodeCall: _anywhere(Output._anew),
    WebSearch: _anywhere(Output._anew),
    FileSearch: _anywhere(Output._ask),
    Approval: _anywhere(Output._alone),
    Compaction: _anywhere(Output._alone),
    Break: _anywhere(Output._leave),
    Part: {
        **_anywhere(_idle),
        "message": _on(Speech.rest),
        "reasoning": _on(Speech.rest),
        "mcp_call": _on(calls.McpToolCall.rest),
    },
    Annotation: {"message": _on(Message.cite)},
    Arguments: dict.fromkeys(events.CHANNELS, _on(calls.Spoken.say)),
    Interpreting: {"code_interpreter_call": _on(calls.CodeRun.interpret)},
    Searching: dict.fromkeys(("web_search_call", "file_search_call"), _on(calls.Search.seek)),
    McpTools: {"mcp_list_tools": _ends(calls.McpListing.finish)},
    McpResult: {"mcp_call": _ends(calls.McpToolCall.finish)},
    CodeResult: {"code_interpreter_call": _ends(calls.CodeRun.finish)},
    WebResult: {"web_search_call": _ends(calls.Search.finish)},
    FileResult: {"file_search_call": _ends(calls.Search.finish)},
}
