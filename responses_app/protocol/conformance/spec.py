"""Spec of the conformance checker: the names that a stream may use, and the rules of each item type.

These tables are written from the published API, on purpose apart from the registry of item families.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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


# Profile -> types of the events that a stream may have.
EVENTS: Final = {
    "openai": _full(_SHARED + _OPENAI),
    "openresponses": _full(_SHARED + " reasoning.delta reasoning.done"),
}

MISSING: Final = "(absent)"
_PLAIN: Final = frozenset({"completed", "incomplete"})
_TOOL: Final = _PLAIN | {"failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemSpec:
    """Rules of an item type."""

    type: str
    # The statuses with which an item may be done, None if the type has no status.
    final_statuses: frozenset[str] | None = None
    # Keys of the initial payload -> their empty values; MISSING stands for an absent key.
    empty: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    # Keys that have a text from the opening on.
    named: tuple[str, ...] = ()
    # The name of the events of the argument stream, without `response.` and without `.delta` or `.done`, and the key of the text.
    argument_stream: tuple[str, str] | None = None
    # Stage of the progress -> stages that may come next. The empty name is the beginning; a stage that leads nowhere is an end.
    stages: Mapping[str, tuple[str, ...]] | None = None
    # First words of further event names (without `response.`) that only items of this type may have.
    other_events: tuple[str, ...] = ()


_UNTIL_COMPLETED_OR_FAILED: Final = {"": ("in_progress",), "in_progress": ("completed", "failed")}
_ITEM_SPECS: Final = (
    ItemSpec(
        type="message",
        final_statuses=_PLAIN,
        empty={"content": ([],)},
        named=("role",),
        other_events=("output_text", "refusal"),
    ),
    ItemSpec(
        type="reasoning",
        final_statuses=_PLAIN,
        empty={"summary": ([],), "content": ([], None, MISSING)},
        other_events=("reasoning_text", "reasoning", "reasoning_summary_part", "reasoning_summary_text"),
    ),
    ItemSpec(
        type="function_call",
        final_statuses=_PLAIN,
        empty={"arguments": ("",)},
        named=("name", "call_id"),
        argument_stream=("function_call_arguments", "arguments"),
    ),
    ItemSpec(
        type="custom_tool_call",
        final_statuses=_PLAIN,
        empty={"input": ("",)},
        named=("name", "call_id"),
        argument_stream=("custom_tool_call_input", "input"),
    ),
    ItemSpec(type="shell_call", final_statuses=_PLAIN, other_events=("shell_call_command",)),
    ItemSpec(type="shell_call_output", final_statuses=_PLAIN, other_events=("shell_call_output_content",)),
    *(
        ItemSpec(type=kind, final_statuses=_PLAIN)
        for kind in (
            "function_call_output",
            "custom_tool_call_output",
            "computer_call",
            "local_shell_call",
            "local_shell_call_output",
            "tool_search_call",
            "tool_search_output",
            "program_output",
        )
    ),
    ItemSpec(type="computer_call_output", final_statuses=_TOOL),
    ItemSpec(type="apply_patch_call", final_statuses=frozenset({"completed"})),
    ItemSpec(type="apply_patch_call_output", final_statuses=frozenset({"completed", "failed"})),
    ItemSpec(
        type="mcp_call",
        final_statuses=_TOOL,
        empty={"arguments": ("",), "output": (None, MISSING), "error": (None, MISSING)},
        named=("name", "server_label"),
        argument_stream=("mcp_call_arguments", "arguments"),
        stages=_UNTIL_COMPLETED_OR_FAILED,
    ),
    ItemSpec(
        type="mcp_list_tools",
        empty={"tools": ([],)},
        named=("server_label",),
        stages=_UNTIL_COMPLETED_OR_FAILED,
    ),
    ItemSpec(type="mcp_approval_request", named=("name", "server_label")),
    ItemSpec(
        type="code_interpreter_call",
        final_statuses=_TOOL,
        empty={"code": ("", None, MISSING), "outputs": (None, [], MISSING)},
        argument_stream=("code_interpreter_call_code", "code"),
        stages={"": ("in_progress",), "in_progress": ("interpreting",), "interpreting": ("completed",)},
    ),
    ItemSpec(
        type="web_search_call",
        final_statuses=_TOOL,
        stages={
            "": ("in_progress",),
            "in_progress": ("searching", "completed"),
            "searching": ("searching", "completed"),
        },
    ),
    ItemSpec(
        type="file_search_call",
        final_statuses=_TOOL,
        empty={"queries": ([], MISSING), "results": (None, [], MISSING)},
        stages={"": ("in_progress",), "in_progress": ("searching", "completed"), "searching": ("completed",)},
    ),
    ItemSpec(
        type="image_generation_call",
        final_statuses=frozenset({"completed", "failed"}),
        empty={"result": (None, MISSING)},
        stages={
            "": ("in_progress",),
            "in_progress": ("generating", "partial_image", "completed"),
            "generating": ("partial_image", "completed"),
            "partial_image": ("partial_image", "completed"),
        },
    ),
    ItemSpec(type="compaction", other_events=("compaction",)),
    *(ItemSpec(type=kind) for kind in ("mcp_approval_response", "program", "additional_tools")),
)

# Profile -> types of the items that a stream may have.
ITEMS: Final = {
    "openai": frozenset(item.type for item in _ITEM_SPECS),
    "openresponses": frozenset({"message", "function_call", "function_call_output", "reasoning", "compaction"}),
}


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """Rules of all item types, and the names that streams of a profile may use."""

    items: Mapping[str, ItemSpec]
    item_types: frozenset[str]
    events: frozenset[str]
    # First word of an event name (without `response.`) -> types of the items that the event may belong to.
    owners: Mapping[str, tuple[str, ...]]

    def extended(self, item: ItemSpec, *events: str) -> StreamSpec:
        """Return a spec that also accepts `item` and the event types `events`."""
        items = [*self.items.values(), item]
        return spec_of(items, self.item_types | {item.type}, self.events | set(events))


def spec_of(items: list[ItemSpec], item_types: frozenset[str], events: frozenset[str]) -> StreamSpec:
    """Return the spec with these items and names."""
    owners: dict[str, tuple[str, ...]] = {"content_part": ("message", "reasoning")}
    for item in items:
        stream = () if item.argument_stream is None else item.argument_stream[:1]
        progress = () if item.stages is None else (item.type,)
        owners |= dict.fromkeys((*item.other_events, *stream, *progress), (item.type,))
    return StreamSpec({item.type: item for item in items}, item_types, events, owners)


SPECS: Final = {profile: spec_of(list(_ITEM_SPECS), ITEMS[profile], EVENTS[profile]) for profile in EVENTS}

# The keys that the Response of every lifecycle event has.
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
    """Return whether `name` is the name of a vendor, `slug:name`."""
    slug, colon, type_name = name.partition(":")
    return bool(slug and colon and type_name)
