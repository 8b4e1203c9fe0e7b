"""Executor of a server tool that asks before each call, for a rerun: a call waits for an approval as a call of an MCP server does."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.protocol.deltas import Arguments, Call, Delta, EndItem, McpApprovalRequest
from responses_app.runs.server_tools.call_parser import OpeningParser, ServerCallParser
from responses_app.tools.base import Json, ToolExecutor
from responses_app.tools.composite import CompositeExecutor, CompositeOffer
from responses_app.tools.declaration import ServerTool


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
