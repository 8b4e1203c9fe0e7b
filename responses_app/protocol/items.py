"""Items and parts in their wire form at the moment they open (§2.3, initial payloads)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from responses_app.protocol.deltas import (
    Call,
    ClientCall,
    CodeCall,
    Compaction,
    Delta,
    FileSearch,
    McpApprovalRequest,
    McpCall,
    McpList,
    ReasoningDelta,
    RefusalDelta,
    SummaryDelta,
    TextDelta,
    WebSearch,
)
from responses_app.protocol.ids import IdFactory, prefix

Item: TypeAlias = dict[str, Any]


def text_part() -> Item:
    """An empty output text; its lists are empty and never null (C10)."""
    return {"type": "output_text", "text": "", "annotations": [], "logprobs": []}


def refusal_part() -> Item:
    """An empty refusal."""
    return {"type": "refusal", "refusal": ""}


def reasoning_part() -> Item:
    """An empty raw reasoning part."""
    return {"type": "reasoning_text", "text": ""}


def summary_part() -> Item:
    """An empty summary part."""
    return {"type": "summary_text", "text": ""}


def message(mint: IdFactory, phase: str | None) -> Item:
    """An empty message; `phase` is a key only when the model has phases (checklist 182)."""
    item: Item = {
        "id": mint(prefix("message")),
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    return item if phase is None else {**item, "phase": phase}


def reasoning(mint: IdFactory) -> Item:
    """An empty reasoning item; `content` is a list, never null (D12), and there is no `encrypted_content` key."""
    return {"id": mint(prefix("reasoning")), "type": "reasoning", "status": "in_progress", "summary": [], "content": []}


def call(mint: IdFactory, piece: Call) -> Item:
    """A call of a client's tool. The ids are minted here and nowhere else (A1, A2)."""
    kind, key = ("function_call", "arguments") if piece.kind == "function" else ("custom_tool_call", "input")
    item: Item = {
        "id": mint(prefix(kind)),
        "type": kind,
        "status": "in_progress",
        "call_id": mint(prefix("call")),
        "name": piece.name,
        key: "",
    }
    said = {"namespace": piece.namespace, "async": piece.async_ or None}
    return {**item, **{name: value for name, value in said.items() if value is not None}}


def client_call(mint: IdFactory, piece: ClientCall) -> Item:
    """A call of a shell, a patch or a search that the client makes."""
    return {
        "id": mint(prefix(piece.kind)),
        "type": piece.kind,
        "status": "in_progress",
        "call_id": mint(prefix("call")),
        **piece.body,
    }


def mcp_list(mint: IdFactory, piece: McpList) -> Item:
    """A listing of an MCP server's tools; this type has no status, and `error` is a key only where there is one (clients.md §3.1)."""
    return {
        "id": mint(prefix("mcp_list_tools")),
        "type": "mcp_list_tools",
        "server_label": piece.server_label,
        "tools": [],
    }


def mcp_call(mint: IdFactory, piece: McpCall) -> Item:
    """A call of an MCP tool that the server makes."""
    return {
        "id": mint(prefix("mcp_call")),
        "type": "mcp_call",
        "status": "in_progress",
        "approval_request_id": piece.approval_request_id,
        "server_label": piece.server_label,
        "name": piece.name,
        "arguments": "",
        "output": None,
        "error": None,
    }


def approval(mint: IdFactory, piece: McpApprovalRequest) -> Item:
    """A request for approval, whole from the start; this type has no status."""
    return {
        "id": mint(prefix("mcp_approval_request")),
        "type": "mcp_approval_request",
        "server_label": piece.server_label,
        "name": piece.name,
        "arguments": piece.arguments,
    }


def code(mint: IdFactory, piece: CodeCall) -> Item:
    """A run of the code interpreter."""
    return {
        "id": mint(prefix("code_interpreter_call")),
        "type": "code_interpreter_call",
        "status": "in_progress",
        "container_id": piece.container_id,
        "code": "",
        "outputs": None,
    }


def web_search(mint: IdFactory, _piece: WebSearch) -> Item:
    """A web search. Nothing is known of its action yet, but typed clients require one, so it is an empty search."""
    return {
        "id": mint(prefix("web_search_call")),
        "type": "web_search_call",
        "status": "in_progress",
        "action": {"type": "search", "query": ""},
    }


def file_search(mint: IdFactory, _piece: FileSearch) -> Item:
    """A file search; its queries are told when it is done (§1.4)."""
    return {
        "id": mint(prefix("file_search_call")),
        "type": "file_search_call",
        "status": "in_progress",
        "queries": [],
        "results": None,
    }


def compaction(mint: IdFactory, piece: Compaction) -> Item:
    """Compacted context, whole from the start so that the blob never differs between snapshots (D13)."""
    return {"id": mint(prefix("compaction")), "type": "compaction", "encrypted_content": piece.encrypted_content}


def _message(mint: IdFactory, piece: TextDelta | RefusalDelta) -> Item:
    return message(mint, piece.phase if isinstance(piece, TextDelta) else None)


def _reasoning(mint: IdFactory, _piece: ReasoningDelta | SummaryDelta) -> Item:
    return reasoning(mint)


BIRTHS: Final[dict[type[Delta], Callable[[IdFactory, Any], Item]]] = {
    TextDelta: _message,
    RefusalDelta: _message,
    ReasoningDelta: _reasoning,
    SummaryDelta: _reasoning,
    Call: call,
    ClientCall: client_call,
    McpList: mcp_list,
    McpCall: mcp_call,
    McpApprovalRequest: approval,
    CodeCall: code,
    WebSearch: web_search,
    FileSearch: file_search,
    Compaction: compaction,
}
