"""MCP tools of a run: the offer to the model, listings, approvals and calls."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from responses_app.protocol.deltas import Arguments, Delta, EndItem, McpCall, McpList, McpResult, McpTools
from responses_app.tools.arguments import InvalidArguments, parse_arguments
from responses_app.tools.base import Json
from responses_app.tools.mcp import filters
from responses_app.tools.mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, McpError
from responses_app.tools.mcp.offer import McpOffer
from responses_app.tools.mcp.sessions import McpSessions

ALREADY_USED = "This approval was used by another response, so the call was not made."
# Digits of integers that may have more than 64 bits.
_LONG_INTEGER: Final = re.compile(r"\d{19}")

ClaimApproval: TypeAlias = Callable[[str], Awaitable[bool]]


def _any_server(_request_id: str, _tool: Json) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class BoundApprovals:
    """Binding of approvals: endings of the ids of approval requests by label, and a check of an id for a tool of the request."""

    id_endings: Mapping[str, str] = field(default_factory=dict)
    is_for_server: Callable[[str, Json], bool] = _any_server


class McpExecutor:
    """MCP tools of a run, a `ToolExecutor`.

    `tools` are the `mcp` tools of the request by label. `claim` takes an approval request for this run; it returns False if
    another response has used the approval. `approvals` binds approvals to the addresses of the servers.
    """

    def __init__(
        self, tools: Mapping[str, Json], sessions: McpSessions, claim: ClaimApproval, approvals: BoundApprovals | None = None
    ) -> None:
        self._tools, self._sessions, self._claim = tools, sessions, claim
        self._approvals = approvals or BoundApprovals()
        self._offer = McpOffer(tools, {})

    async def prepare(self, items: Sequence[Json]) -> None:
        """Do nothing: the items contain the listings."""

    def offer(self, items: Sequence[Json]) -> McpOffer:
        """Return the offer: the tools of the newest listing of each server."""
        self._offer = McpOffer(self._tools, _listings(items), self._sessions.prepare, self._approvals.id_endings)
        return self._offer

    def openings(self, items: Sequence[Json]) -> list[Delta]:
        """Return the openings of missing listings, and of the calls that were approved."""
        listed = _listings(items)
        deltas: list[Delta] = [McpList(label) for label, tool in self._tools.items() if _needs_listing(tool, listed.get(label))]
        for request in _approved_requests(items):
            label = request["server_label"]
            # An approval for another address under the same label is not used.
            if label in self._tools and self._approvals.is_for_server(request["id"], self._tools[label]):
                deltas += [
                    McpCall(label, request["name"], request["id"]),
                    Arguments(request["arguments"]),
                    EndItem(),
                ]
        return deltas

    def can_run(self, item: Json) -> bool:
        """Return True for calls and listings of the servers of the request."""
        return item["type"] in ("mcp_call", "mcp_list_tools") and item["server_label"] in self._tools

    def counts(self, item: Json) -> bool:
        """Return True for calls; listings do not count for the limits."""
        return bool(item["type"] == "mcp_call")

    def is_repeatable(self, call: Json) -> bool:
        """Return True for listings, and for tools that declare that a repetition has no effect."""
        if call["type"] == "mcp_list_tools":
            return True
        tool = self._offer.tool(call["server_label"], call["name"])
        return tool is not None and filters.is_repeatable(tool)

    async def run(self, call: Json, report: Callable[[Delta], None]) -> Delta:
        """List the tools of a server, or call a tool."""
        del report
        if call["type"] == "mcp_list_tools":
            return await self._list(call["server_label"])
        try:
            return await self._call(call)
        except McpError as error:
            return McpResult(error=error.error)

    def failure(self, call: Json, message: str) -> Delta:
        """Return the end of a listing or call that failed with `message`."""
        if call["type"] == "mcp_list_tools":
            return McpTools(error=message)
        return McpResult(error=McpError(message, INTERNAL_ERROR).error)

    async def close(self) -> None:
        """Close the sessions, except with programs that the next response of the project may use."""
        await self._sessions.close(keep_programs=True)

    async def _list(self, label: str) -> McpTools:
        try:
            return McpTools(await self._allowed_tools(label))
        except McpError as error:
            return McpTools(error=str(error.error["message"]))

    async def _allowed_tools(self, label: str) -> list[Json]:
        """Return the tools of the server that the request allows. Raises McpError."""
        allowed = self._tools[label].get("allowed_tools")
        return [tool for tool in await self._sessions.list_tools(label) if filters.is_allowed(tool, allowed)]

    async def _call(self, call: Json) -> McpResult:
        label, name, approval = call["server_label"], call["name"], call.get("approval_request_id")
        tool = self._offer.tool(label, name)
        if tool is None and approval is not None:
            # The context may have the approval request alone: without the listing, or behind a compaction.
            tool = next((one for one in await self._allowed_tools(label) if one["name"] == name), None)
        if tool is None:
            raise McpError(f"The server '{label}' has no tool '{name}' that may be called.", METHOD_NOT_FOUND)
        arguments = _parse_arguments(call["arguments"])
        # Last, so that a call that cannot be made uses no approval.
        if approval is not None and not await self._claim(approval):
            raise McpError(ALREADY_USED, INVALID_PARAMS)
        outcome = await self._sessions.call(label, name, arguments, is_repeatable=filters.is_repeatable(tool))
        return McpResult(outcome.output, outcome.error)


def _parse_arguments(text: str) -> dict[str, Any]:
    """Parse the arguments of a call. Raises McpError."""
    try:
        arguments = parse_arguments(text)
    except InvalidArguments as error:
        raise McpError(str(error), INVALID_PARAMS) from error
    if _LONG_INTEGER.search(text):
        # Integers of more than 64 bits are rounded in `arguments`.
        with suppress(RecursionError):
            arguments = json.loads(text)
    return arguments


def _listings(items: Sequence[Json]) -> dict[str, Sequence[Json]]:
    """Return the tools of the newest successful listing of each server, by label."""
    return {item["server_label"]: item["tools"] for item in items if item["type"] == "mcp_list_tools" and not item.get("error")}


def _needs_listing(tool: Json, listed: Sequence[Json] | None) -> bool:
    """Return whether the server must be asked: without a listing, or without a tool that the request allows by name."""
    if listed is None:
        return True
    return bool(filters.named(tool.get("allowed_tools")) - {one["name"] for one in listed})


def _approved_requests(items: Sequence[Json]) -> Iterator[Json]:
    """Yield the approval requests that were approved and whose calls were not made."""
    made = {item.get("approval_request_id") for item in items if item["type"] == "mcp_call"}
    approved = {item["approval_request_id"] for item in items if item["type"] == "mcp_approval_response" and item["approve"]}
    for item in items:
        if item["type"] == "mcp_approval_request" and item["id"] in approved - made:
            yield item
