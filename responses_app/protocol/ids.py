"""How ids begin: one prefix per kind of object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

IdFactory: TypeAlias = Callable[[str], str]
"""Given a prefix, a new id that begins with it. Chance lives outside of this room, so ids come in through this."""

PREFIXES = {
    "response": "resp_",
    "message": "msg_",
    "reasoning": "rs_",
    "function_call": "fc_",
    "custom_tool_call": "ctc_",
    "shell_call": "sh_",
    "local_shell_call": "lsh_",
    "apply_patch_call": "apc_",
    "tool_search_call": "tsc_",
    "computer_call": "cu_",
    "mcp_call": "mcp_",
    "mcp_list_tools": "mcpl_",
    "mcp_approval_request": "mcpr_",
    "web_search_call": "ws_",
    "file_search_call": "fs_",
    "code_interpreter_call": "ci_",
    "compaction": "cmp_",
    "call": "call_",
    "conversation": "conv_",
    "request": "req_",
}


def prefix(kind: str) -> str:
    """The prefix of ids of this kind, an item type or one of the other keys above (A3, F10). KeyError if unknown."""
    return PREFIXES[kind]
