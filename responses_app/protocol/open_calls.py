"""The open calls: those of the client's tools and those that the server makes itself.

The status events follow §2.3. An item that is cut short or fails says no `completed` (rule I7 allows that), but its channel
always ends with `.done` (rule C4).
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from responses_app.protocol import events
from responses_app.protocol.deltas import (
    Arguments,
    CodeResult,
    CodeStarted,
    FileResult,
    McpResult,
    McpTools,
    SearchStarted,
    WebResult,
)
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import CHANNELS, Event
from responses_app.protocol.items import Item
from responses_app.protocol.open_items import MessageItem, OpenItem, ReasoningItem

UNLISTED: Final = "The response ended before the server had listed its tools."


class StreamedCall(OpenItem):
    """A call that says one text, its channel: arguments, input or code."""

    __slots__ = ("channel", "said", "whole")

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.channel = CHANNELS[self.kind]
        self.said: list[str] = []
        self.whole: str | None = None

    def append(self, piece: Arguments) -> list[Event]:
        """More of the channel. Raises GrammarError when it is sealed."""
        if self.whole is not None:
            raise ProtocolError(f"the {self.channel.key} of this {self.kind} are complete already")
        return self._say(piece.text)

    def _say(self, text: str) -> list[Event]:
        if not text:
            return []
        self.said.append(text)
        return [events.call_delta(self.kind, self.id, self.index, text)]

    def finish_arguments(self, blank: str = "") -> list[Event]:
        """The channel ends, always with `.done` (C3, rule C4); `blank` is said if nothing was."""
        if self.whole is not None:
            return []
        told = [] if "".join(self.said).strip() else self._say(blank)
        self.whole = "".join(self.said)
        return [*told, events.call_done(self.kind, self.id, self.index, self.whole)]

    def wait_for_result(self) -> list[Event]:
        """End the argument stream because another item begins; the result of the call is pending."""
        return self.finish_arguments(self.channel.blank)

    def close(self, status: str) -> list[Event]:
        """The channel ends, then the item."""
        told = self.finish_arguments(self.channel.blank if status == "completed" else "")
        return [*told, self.done({self.channel.key: self.whole, "status": status})]


class FunctionCall(StreamedCall):
    """A call of a client's function. Arguments that do not parse make it `incomplete`, whatever was wished (rule C7)."""

    __slots__ = ()

    def close(self, status: str) -> list[Event]:
        """As any call, but judged by its arguments."""
        told = self.finish_arguments(self.channel.blank if status == "completed" else "")
        honest = status if is_json(self.whole or "") else "incomplete"
        return [*told, self.done({"arguments": self.whole, "status": honest})]


class ShellCall(OpenItem):
    """A call of the client's shell: each of its commands is told by events of its own (§2.3)."""

    __slots__ = ("action",)

    def __init__(self, body: Item, index: int) -> None:
        self.action = body["action"]
        super().__init__({**body, "action": {**self.action, "commands": []}}, index)

    def open(self) -> list[Event]:
        """The item opens, and its commands are told one after the other."""
        return [*super().open(), *(told for n, text in enumerate(self.action["commands"]) for told in self._command(n, text))]

    def _command(self, number: int, text: str) -> list[Event]:
        said = [events.command_delta(self.index, number, text)] if text else []
        return [events.command_added(self.index, number), *said, events.command_done(self.index, number, text)]

    def close(self, status: str) -> list[Event]:
        """With all that it asks for."""
        return [self.done({"action": self.action, "status": status})]


class ApplyPatchCall(OpenItem):
    """A change of the client's files. It is told whole, and its type knows no other end than `completed` (§1.4)."""

    __slots__ = ()

    def close(self, _status: str) -> list[Event]:
        """Whole, however the response ends."""
        return [self.done({"status": "completed"})]


class McpToolCall(StreamedCall):
    """A call of an MCP tool; its status events are `in_progress` and one of `completed`, `failed`."""

    __slots__ = ()
    runs_on_server = True

    def open(self) -> list[Event]:
        """The item opens and is in progress."""
        return [*super().open(), self.stage("in_progress")]

    def finish(self, piece: McpResult) -> list[Event]:
        """The result of the call."""
        status = "completed" if piece.error is None else "failed"
        told = self.finish_arguments(self.channel.blank)
        changes = {"arguments": self.whole, "output": piece.output, "error": piece.error, "status": status}
        return [*told, self.stage(status), self.done(changes)]


class McpListToolsItem(OpenItem):
    """A listing of MCP tools. The type has no status: a listing that is cut short is one that failed."""

    __slots__ = ()
    runs_on_server = True

    def open(self) -> list[Event]:
        """The item opens and is in progress."""
        return [*super().open(), self.stage("in_progress")]

    def finish(self, piece: McpTools) -> list[Event]:
        """The tools, or why there are none."""
        stage = "completed" if piece.error is None else "failed"
        error = {} if piece.error is None else {"error": piece.error}
        return [self.stage(stage), self.done({"tools": list(piece.tools), **error})]

    def close(self, _status: str) -> list[Event]:
        """Cut short."""
        return self.finish(McpTools(error=UNLISTED))


class CodeInterpreterCall(StreamedCall):
    """A code interpreter call: code, then `interpreting`, then the outputs."""

    __slots__ = ("running",)
    runs_on_server = True

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.running = False

    def open(self) -> list[Event]:
        """The item opens and is in progress."""
        return [*super().open(), self.stage("in_progress")]

    def mark_running(self, _piece: CodeStarted | None = None) -> list[Event]:
        """The code is complete and runs. Said once."""
        if self.running:
            return []
        self.running = True
        return [*self.finish_arguments(), self.stage("interpreting")]

    def finish(self, piece: CodeResult) -> list[Event]:
        """The outputs; a run that failed says no `completed`."""
        outputs = None if piece.outputs is None else list(piece.outputs)
        if piece.failed:
            return [*self.finish_arguments(), self.done({"code": self.whole, "outputs": outputs, "status": "failed"})]
        told = [*self.mark_running(), self.stage("completed")]
        return [*told, self.done({"code": self.whole, "outputs": outputs, "status": "completed"})]


class SearchCall(OpenItem):
    """A web search or a file search. `asked` is what its `done` tells even when nothing was found."""

    __slots__ = ("asked", "sought")
    runs_on_server = True

    def __init__(self, body: Item, index: int) -> None:
        super().__init__(body, index)
        self.asked: dict[str, Any] = {}
        self.sought = False

    def open(self) -> list[Event]:
        """The item opens and is in progress."""
        return [*super().open(), self.stage("in_progress")]

    def mark_searching(self, _piece: SearchStarted) -> list[Event]:
        """The search is under way; a file search says so once (§2.3)."""
        again, self.sought = self.sought, True
        return [] if again and self.kind == "file_search_call" else [self.stage("searching")]

    def finish(self, piece: WebResult | FileResult) -> list[Event]:
        """What was found; a search that failed says no `completed`."""
        status = "failed" if piece.failed else "completed"
        done = self.done({**_found(piece), "status": status})
        return [done] if piece.failed else [self.stage("completed"), done]

    def close(self, status: str) -> list[Event]:
        """Cut short."""
        return [self.done({**self.asked, "status": status})]


def _found(piece: WebResult | FileResult) -> dict[str, Any]:
    if isinstance(piece, WebResult):
        return {"action": piece.action}
    return {"queries": list(piece.queries), "results": None if piece.results is None else list(piece.results)}


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


def is_json(text: str) -> bool:
    """Whether this is JSON for every client: Python alone would also take NaN and Infinity."""
    try:
        json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError):
        return False
    return True


FAMILIES: Final[dict[str, type[OpenItem]]] = {
    "message": MessageItem,
    "reasoning": ReasoningItem,
    "function_call": FunctionCall,
    "custom_tool_call": StreamedCall,
    "shell_call": ShellCall,
    "local_shell_call": OpenItem,
    "apply_patch_call": ApplyPatchCall,
    "tool_search_call": OpenItem,
    "computer_call": OpenItem,
    "mcp_list_tools": McpListToolsItem,
    "mcp_call": McpToolCall,
    "mcp_approval_request": OpenItem,
    "code_interpreter_call": CodeInterpreterCall,
    "web_search_call": SearchCall,
    "file_search_call": SearchCall,
    "compaction": OpenItem,
}
