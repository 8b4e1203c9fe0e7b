"""One canonical stream for each family of items."""

from __future__ import annotations

from typing import Any, Final

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
    FileResult,
    FileSearch,
    McpApprovalRequest,
    McpCall,
    McpList,
    McpResult,
    McpTools,
    ReasoningDelta,
    SearchStarted,
    TextDelta,
    WebResult,
    WebSearch,
)
from tests.support.protocol.response_strategies import CITATION, COMPUTER, FOUND, PATCH, SEARCHED, SHELL, TOOL, TOOL_ERROR

TEXT = "content_part.added output_text.delta output_text.done content_part.done"
RAW = "content_part.added reasoning_text.delta reasoning_text.done content_part.done"
ARGS = "function_call_arguments.delta function_call_arguments.done"
INPUT = "custom_tool_call_input.delta custom_tool_call_input.done"
CODE = "code_interpreter_call_code.delta code_interpreter_call_code.done"
MCP = "mcp_call_arguments.delta mcp_call_arguments.done"
COMMAND = " ".join(f"shell_call_command.{act}" for act in ("added", "delta", "done"))
EXEC: dict[str, Any] = {
    "type": "exec",
    "command": ["ls"],
    "env": {},
    "timeout_ms": None,
    "user": None,
    "working_directory": None,
}
FILE = "file_search_call"
WEB = "web_search_call"


# name -> (pieces, events of the only item between its `added` and `done`, its status at the end)
FAMILIES: Final[dict[str, tuple[list[Delta], str, str | None]]] = {
    "message": ([TextDelta("a"), TextDelta("b")], f"{TEXT.replace('delta', 'delta output_text.delta')}", "completed"),
    "cited message": (
        [TextDelta("a"), Annotation(CITATION), TextDelta("b")],
        "content_part.added output_text.delta output_text.annotation.added output_text.delta output_text.done content_part.done",
        "completed",
    ),
    "raw reasoning": ([ReasoningDelta("r")], RAW, "completed"),
    "function call": ([Call("f"), Arguments('{"a":1}')], ARGS, "completed"),
    "custom call": ([Call("f", "custom"), Arguments('a "b"\nc')], INPUT, "completed"),
    "custom call without input": ([Call("f", "custom")], "custom_tool_call_input.done", "completed"),
    "shell": ([SHELL], f"{COMMAND} {COMMAND}", "completed"),
    "shell without a command": ([ClientCall("shell_call", {"action": {"commands": []}})], "", "completed"),
    "local shell": ([ClientCall("local_shell_call", {"action": EXEC})], "", "completed"),
    "patch": ([PATCH], "", "completed"),
    "tool search": ([ClientCall("tool_search_call", {"execution": "client", "arguments": {"query": "q"}})], "", "completed"),
    "computer": ([COMPUTER], "", "completed"),
    "mcp tools": ([McpList("m"), McpTools([TOOL])], "mcp_list_tools.in_progress mcp_list_tools.completed", None),
    "mcp tools that fail": ([McpList("m"), McpTools(error="no")], "mcp_list_tools.in_progress mcp_list_tools.failed", None),
    "mcp call": (
        [McpCall("m", "t"), Arguments("{}"), McpResult("o")],
        f"mcp_call.in_progress {MCP} mcp_call.completed",
        "completed",
    ),
    "mcp call that fails": (
        [McpCall("m", "t", "mcpr_1"), Arguments("{}"), McpResult(error=TOOL_ERROR)],
        f"mcp_call.in_progress {MCP} mcp_call.failed",
        "failed",
    ),
    "approval": ([McpApprovalRequest("m", "t", "{}")], "", None),
    "code": (
        [CodeCall("c"), Arguments("1"), CodeStarted(), CodeResult([{"type": "logs", "logs": "1"}])],
        f"code_interpreter_call.in_progress {CODE} code_interpreter_call.interpreting code_interpreter_call.completed",
        "completed",
    ),
    "code in a hurry": (
        [CodeCall("c"), Arguments("1"), CodeResult()],
        f"code_interpreter_call.in_progress {CODE} code_interpreter_call.interpreting code_interpreter_call.completed",
        "completed",
    ),
    "code that fails": (
        [CodeCall("c"), Arguments("1"), CodeStarted(), CodeStarted(), CodeResult(failed=True)],
        f"code_interpreter_call.in_progress {CODE} code_interpreter_call.interpreting",
        "failed",
    ),
    "web search": (
        [WebSearch(), SearchStarted(), WebResult(SEARCHED)],
        f"{WEB}.in_progress {WEB}.searching {WEB}.completed",
        "completed",
    ),
    "web search that fails": ([WebSearch(), WebResult(SEARCHED, failed=True)], f"{WEB}.in_progress", "failed"),
    "file search": (
        [FileSearch(["q"]), SearchStarted(), FileResult(["q"], [FOUND])],
        f"{FILE}.in_progress {FILE}.searching {FILE}.completed",
        "completed",
    ),
    "file search that fails": ([FileSearch(), FileResult(["q"], failed=True)], f"{FILE}.in_progress", "failed"),
    "compaction": ([Compaction("blob")], "", None),
}
