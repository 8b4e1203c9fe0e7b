"""Deltas: the inputs of the writer. The modules of `items` define the deltas of the families."""

from __future__ import annotations

from responses_app.protocol.items.base import Arguments, Delta, EndItem, ForItem, Json, OpenedWhenComplete
from responses_app.protocol.items.client_tools.client_call import ClientCall
from responses_app.protocol.items.client_tools.function_call import Call
from responses_app.protocol.items.compaction import Compaction
from responses_app.protocol.items.message import Annotation, TextDelta
from responses_app.protocol.items.reasoning import ReasoningDelta
from responses_app.protocol.items.server_tools.code_interpreter import CodeCall, CodeResult, CodeStarted
from responses_app.protocol.items.server_tools.file_search import FileResult, FileSearch
from responses_app.protocol.items.server_tools.mcp import McpApprovalRequest, McpCall, McpList, McpResult, McpTools
from responses_app.protocol.items.server_tools.search_call import SearchStarted
from responses_app.protocol.items.server_tools.web_search import WebResult, WebSearch
from responses_app.protocol.output_problems import OutputProblem

__all__ = [
    "Annotation",
    "Arguments",
    "Call",
    "ClientCall",
    "CodeCall",
    "CodeResult",
    "CodeStarted",
    "Compaction",
    "Delta",
    "EndItem",
    "FileResult",
    "FileSearch",
    "ForItem",
    "Json",
    "McpApprovalRequest",
    "McpCall",
    "McpList",
    "McpResult",
    "McpTools",
    "OpenedWhenComplete",
    "OutputProblem",
    "ReasoningDelta",
    "SearchStarted",
    "TextDelta",
    "WebResult",
    "WebSearch",
]
