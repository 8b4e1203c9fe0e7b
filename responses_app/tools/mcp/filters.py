"""Filters of MCP tools: `allowed_tools` and `require_approval` of a request, and tools that may be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
Filter: TypeAlias = Sequence[str] | Json


def is_allowed(tool: Json, allowed_tools: Filter | None) -> bool:
    """Return whether `allowed_tools` allows the listed `tool`: None allows all, a list of names or a filter object some."""
    return allowed_tools is None or _matches(tool, allowed_tools)


def needs_approval(tool: Json, require_approval: str | Json) -> bool:
    """Return whether a call of `tool` needs an approval. A tool in neither filter of an object needs an approval."""
    if isinstance(require_approval, str):
        return require_approval != "never"
    always, never = require_approval.get("always"), require_approval.get("never")
    if always is not None and _matches(tool, always):
        return True
    return never is None or not _matches(tool, never)


def is_repeatable(tool: Json) -> bool:
    """Return whether `tool` declares that it changes nothing, or that a repetition changes nothing."""
    return _hint(tool, "readOnlyHint") or _hint(tool, "idempotentHint")


def named(allowed_tools: Filter | None) -> frozenset[str]:
    """Return the names of tools in a filter."""
    if allowed_tools is None:
        return frozenset()
    names = allowed_tools.get("tool_names") if isinstance(allowed_tools, Mapping) else allowed_tools
    return frozenset(names or ())


def _matches(tool: Json, condition: Filter) -> bool:
    """Return whether `tool` fits all keys of the filter. An empty filter object fits no tool."""
    if not isinstance(condition, Mapping):
        return tool["name"] in condition
    names, read_only = condition.get("tool_names"), condition.get("read_only")
    if names is None and read_only is None:
        return False
    by_name = names is None or tool["name"] in names
    # A tool without the hint may write, so it is not read-only.
    return by_name and (read_only is None or _hint(tool, "readOnlyHint") == read_only)


def _hint(tool: Json, name: str) -> bool:
    return (tool.get("annotations") or {}).get(name) is True
