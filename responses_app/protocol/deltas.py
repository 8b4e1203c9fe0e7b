"""The few words that a model or a tool can say; the writer turns them into events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Visible text of a message. A change of `phase` starts a new message."""

    text: str
    logprobs: Sequence[Json] = ()
    phase: Literal["commentary", "final_answer"] | None = None


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """Text of a refusal part."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """Raw reasoning text."""

    text: str


@dataclass(frozen=True, slots=True)
class SummaryDelta:
    """Text of a reasoning summary part."""

    text: str


@dataclass(frozen=True, slots=True)
class EndPart:
    """The open content or summary part ends here; what follows in the same item is a new part."""


@dataclass(frozen=True, slots=True)
class EndItem:
    """The open item ends here, complete; what follows opens another one."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A citation that belongs to the open text part, in its wire form."""

    value: Json


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of the client's tools begins; `Arguments` carry its arguments or its free text."""

    name: str
    kind: Literal["function", "custom"] = "function"
    namespace: str | None = None
    # The client may answer it in any later turn, or not at all.
    async_: bool = False


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call of a tool that the protocol names and the client runs, whole; `body` is its action, operation or arguments."""

    kind: Literal["shell_call", "local_shell_call", "apply_patch_call", "tool_search_call", "computer_call"]
    body: Json


@dataclass(frozen=True, slots=True)
class Arguments:
    """More of what the open call says: JSON arguments, the input of a custom tool, or code. Exactly as generated."""

    text: str


@dataclass(frozen=True, slots=True)
class McpList:
    """The server begins to list the tools of an MCP server."""

    server_label: str


@dataclass(frozen=True, slots=True)
class McpTools:
    """The listing ends: with tools, or with an error."""

    tools: Sequence[Json] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True)
class McpCall:
    """A call of a tool on an MCP server begins."""

    server_label: str
    name: str
    approval_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class McpResult:
    """The MCP call ends: with an output, or with an error object (`mcp_tool_execution_error`, `mcp_protocol_error`, `http_error`)."""

    output: str | None = None
    error: Json | None = None


@dataclass(frozen=True, slots=True)
class McpApprovalRequest:
    """An MCP call that waits for the client's approval."""

    server_label: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class CodeCall:
    """A code interpreter call begins; `Arguments` carry its code."""

    container_id: str


@dataclass(frozen=True, slots=True)
class CodeStarted:
    """The code is complete and runs now."""


@dataclass(frozen=True, slots=True)
class CodeResult:
    """The code has run."""

    outputs: Sequence[Json] | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class WebSearch:
    """A web search begins."""


@dataclass(frozen=True, slots=True)
class FileSearch:
    """A file search begins."""

    queries: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class SearchStarted:
    """The open search is under way."""


@dataclass(frozen=True, slots=True)
class WebResult:
    """The web search ends; `action` is its wire form."""

    action: Json
    failed: bool = False


@dataclass(frozen=True, slots=True)
class FileResult:
    """The file search ends."""

    queries: Sequence[str]
    results: Sequence[Json] | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Compaction:
    """Earlier context, folded into an opaque token."""

    encrypted_content: str


@dataclass(frozen=True, slots=True)
class ForItem:
    """A delta for the open item at `output_index`: progress or the result of a tool, while other items are open too."""

    output_index: int
    delta: Delta


Delta: TypeAlias = (
    TextDelta
    | RefusalDelta
    | ReasoningDelta
    | SummaryDelta
    | EndPart
    | EndItem
    | Annotation
    | Call
    | ClientCall
    | Arguments
    | McpList
    | McpTools
    | McpCall
    | McpResult
    | McpApprovalRequest
    | CodeCall
    | CodeStarted
    | CodeResult
    | WebSearch
    | FileSearch
    | SearchStarted
    | WebResult
    | FileResult
    | Compaction
    | ForItem
)
