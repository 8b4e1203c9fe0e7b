"""The names that a stream may use: events and items per profile, statuses per item, the initial payloads."""

from __future__ import annotations

from typing import Final

_SHARED: Final = (
    "error created queued in_progress completed failed incomplete output_item.added output_item.done content_part.added"
    " content_part.done output_text.delta output_text.done output_text.annotation.added refusal.delta refusal.done"
    " function_call_arguments.delta function_call_arguments.done reasoning_summary_part.added reasoning_summary_part.done"
    " reasoning_summary_text.delta reasoning_summary_text.done"
)
_OPENAI: Final = (
    " reasoning_text.delta reasoning_text.done audio.delta audio.done audio.transcript.delta audio.transcript.done"
    " code_interpreter_call_code.delta code_interpreter_call_code.done code_interpreter_call.in_progress"
    " code_interpreter_call.interpreting code_interpreter_call.completed compaction.compacting file_search_call.in_progress"
    " file_search_call.searching file_search_call.completed web_search_call.in_progress web_search_call.searching"
    " web_search_call.completed shell_call_command.added shell_call_command.delta shell_call_command.done"
    " shell_call_output_content.delta shell_call_output_content.done image_generation_call.in_progress"
    " image_generation_call.generating image_generation_call.partial_image image_generation_call.completed"
    " mcp_call_arguments.delta mcp_call_arguments.done mcp_call.in_progress mcp_call.completed mcp_call.failed"
    " mcp_list_tools.in_progress mcp_list_tools.completed mcp_list_tools.failed custom_tool_call_input.delta"
    " custom_tool_call_input.done"
)


def _full(names: str) -> frozenset[str]:
    return frozenset(name if name == "error" else f"response.{name}" for name in names.split())


EVENTS: Final = {
    "openai": _full(_SHARED + _OPENAI),
    "openresponses": _full(_SHARED + " reasoning.delta reasoning.done"),
}

# Statuses with which an item may be done (§1.4). An item type that is not here has no status to judge.
_PLAIN: Final = frozenset({"completed", "incomplete"})
_TOOL: Final = _PLAIN | {"failed"}
FINAL_STATUSES: Final = {
    **dict.fromkeys(("message", "reasoning", "function_call", "custom_tool_call", "function_call_output"), _PLAIN),
    **dict.fromkeys(("custom_tool_call_output", "computer_call", "local_shell_call", "local_shell_call_output"), _PLAIN),
    **dict.fromkeys(("shell_call", "shell_call_output", "tool_search_call", "tool_search_output", "program_output"), _PLAIN),
    **dict.fromkeys(
        ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "computer_call_output"), _TOOL
    ),
    "image_generation_call": frozenset({"completed", "failed"}),
    "apply_patch_call": frozenset({"completed"}),
    "apply_patch_call_output": frozenset({"completed", "failed"}),
}
_STATELESS: Final = [
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "compaction",
    "program",
    "additional_tools",
]

ITEMS: Final = {
    "openai": frozenset(FINAL_STATUSES) | frozenset(_STATELESS),
    "openresponses": frozenset({"message", "function_call", "function_call_output", "reasoning", "compaction"}),
}

# Item type -> key -> values that say nothing yet; MISSING stands for an absent key (§2.3, initial payloads).
MISSING: Final = "(absent)"
EMPTY: Final[dict[str, dict[str, tuple[object, ...]]]] = {
    "message": {"content": ([],)},
    "reasoning": {"summary": ([],), "content": ([], None, MISSING)},
    "function_call": {"arguments": ("",)},
    "custom_tool_call": {"input": ("",)},
    "mcp_call": {"arguments": ("",), "output": (None, MISSING), "error": (None, MISSING)},
    "mcp_list_tools": {"tools": ([],)},
    "code_interpreter_call": {"code": ("", None, MISSING), "outputs": (None, [], MISSING)},
    "file_search_call": {"queries": ([], MISSING), "results": (None, [], MISSING)},
    "image_generation_call": {"result": (None, MISSING)},
}

# Item type -> keys that name what it is about, from its opening on (E1: a call without a name).
NAMED: Final[dict[str, tuple[str, ...]]] = {
    "message": ("role",),
    "function_call": ("name", "call_id"),
    "custom_tool_call": ("name", "call_id"),
    "mcp_call": ("name", "server_label"),
    "mcp_list_tools": ("server_label",),
    "mcp_approval_request": ("name", "server_label"),
}

# The keys that every embedded Response has (§1.3, column R).
RESPONSE_KEYS: Final = frozenset(
    [
        "id",
        "object",
        "created_at",
        "completed_at",
        "status",
        "error",
        "incomplete_details",
        "instructions",
        "model",
        "output",
        "previous_response_id",
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "truncation",
        "text",
        "reasoning",
        "temperature",
        "top_p",
        "presence_penalty",
        "frequency_penalty",
        "top_logprobs",
        "max_output_tokens",
        "max_tool_calls",
        "usage",
        "store",
        "background",
        "service_tier",
        "metadata",
        "safety_identifier",
        "prompt_cache_key",
    ]
)


def is_vendor_type(name: str) -> bool:
    """Whether this is a vendor's name, `slug:name`."""
    slug, colon, rest = name.partition(":")
    return bool(slug and colon and rest)
