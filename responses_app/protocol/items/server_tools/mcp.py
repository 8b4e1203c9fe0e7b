"""MCP: listings of tools, calls of tools, and requests for approval of calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from responses_app.protocol.events import ArgumentStreamSpec, Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import (
    COMPLETED_INCOMPLETE_OR_FAILED,
    Arguments,
    Delta,
    Family,
    Item,
    Json,
    OpenedWhenComplete,
    OpenItem,
    OutputItem,
)
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.protocol.items.streamed_call import StreamedCall

UNLISTED_MESSAGE: Final = "The response ended before the server had listed its tools."
_PROGRESS: Final = ("in_progress", "completed", "failed")


@dataclass(slots=True)
class McpList(Delta):
    """The beginning of a listing of the tools of an MCP server."""

    server_label: str


@dataclass(slots=True)
class McpTools(Delta):
    """The end of a listing, with tools or with an error."""

    tools: Sequence[Json] = ()
    error: str | None = None


@dataclass(slots=True)
class McpCall(Delta):
    """Beginning of a call of a tool on an MCP server; `Arguments` carry the arguments."""

    server_label: str
    name: str
    approval_request_id: str | None = None


@dataclass(slots=True)
class McpResult(ToolResult):
    """The result of an MCP call: an output or an error (`mcp_tool_execution_error`, `mcp_protocol_error`, `http_error`)."""

    output: str | None = None
    error: Json | None = None


@dataclass(slots=True)
class McpApprovalRequest(OpenedWhenComplete):
    """A whole MCP call that waits for the approval of the client. The id of the item gets the ending `id_ending`."""

    server_label: str
    name: str
    arguments: str
    id_ending: str = ""


class McpListToolsItem(OpenItem):
    """An open listing. The type has no status: a listing without a result ends with an error."""

    __slots__ = ()

    def finish(self, delta: McpTools) -> list[Event]:
        """Close the listing with the tools or the error of `delta`."""
        stage = "completed" if delta.error is None else "failed"
        error = {} if delta.error is None else {"error": delta.error}
        return [self.progress(stage), self.done({"tools": list(delta.tools), **error})]

    def close(self, _status: str) -> list[Event]:
        """Close the listing as failed."""
        return self.finish(McpTools(error=UNLISTED_MESSAGE))


class McpToolCall(StreamedCall):
    """An open call of an MCP tool."""

    __slots__ = ()

    def finish(self, delta: McpResult) -> list[Event]:
        """Close the call with the output or the error of `delta`."""
        status = "completed" if delta.error is None else "failed"
        emitted = self.wait_for_result()
        changes = {"arguments": self.arguments, "output": delta.output, "error": delta.error, "status": status}
        return [*emitted, self.progress(status), self.done(changes)]


def _initial_listing(delta: McpList, _new_id: IdFactory) -> Item:
    # `error` is a key only of a listing that failed.
    return {"server_label": delta.server_label, "tools": []}


def _initial_call(delta: McpCall, _new_id: IdFactory) -> Item:
    return {
        "status": "in_progress",
        "approval_request_id": delta.approval_request_id,
        "server_label": delta.server_label,
        "name": delta.name,
        "arguments": "",
        "output": None,
        "error": None,
    }


def _initial_request(delta: McpApprovalRequest, _new_id: IdFactory) -> Item:
    return {"server_label": delta.server_label, "name": delta.name, "arguments": delta.arguments}


MCP_LIST_TOOLS: Final = Family(
    type="mcp_list_tools",
    id_prefix="mcpl_",
    runs_on_server=True,
    item=McpListToolsItem,
    opened_by={McpList: ""},
    initial=_initial_listing,
    results={McpTools: McpListToolsItem.finish},
    progress=_PROGRESS,
)
MCP_CALL: Final = Family(
    type="mcp_call",
    id_prefix="mcp_",
    tool="mcp",
    runs_on_server=True,
    item=McpToolCall,
    opened_by={McpCall: ""},
    initial=_initial_call,
    steps={Arguments: McpToolCall.append},
    results={McpResult: McpToolCall.finish},
    argument_stream=ArgumentStreamSpec(
        delta="response.mcp_call_arguments.delta",
        done="response.mcp_call_arguments.done",
        key="arguments",
        empty="{}",
    ),
    progress=_PROGRESS,
    final_statuses=COMPLETED_INCOMPLETE_OR_FAILED,
)
MCP_APPROVAL_REQUEST: Final = Family(
    type="mcp_approval_request",
    id_prefix="mcpr_",
    output=OutputItem("mcp_approval_response", "mcpr_", key="approval_request_id", has_status=False),
    opened_by={McpApprovalRequest: ""},
    initial=_initial_request,
    whole=True,
)
