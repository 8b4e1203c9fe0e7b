"""First difference between the items of an earlier prompt and the items of a later prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

Items: TypeAlias = Sequence[Mapping[str, Any]]
# Fields of items that no prompt shows.
_HIDDEN: Final = frozenset({"id", "status", "annotations", "logprobs", "encrypted_content", "created_by", "phase"})
_TEXT_TYPES: Final = frozenset({"input_text", "output_text", "text"})
# Items that add tools to the beginning of a prompt.
TOOL_ITEMS: Final = frozenset({"mcp_list_tools", "additional_tools", "tool_search_output"})


def find_item_change(earlier: Items, later: Items) -> tuple[int, str, str] | None:
    """Return index, type and change of the first item of `earlier` that `later` does not repeat. None if `later` begins with `earlier`."""
    before, after = [_shown(item) for item in earlier], [_shown(item) for item in later]
    for index, item in enumerate(before):
        if index >= len(after):
            return index, _name(earlier[index]), "removed"
        if after[index] != item:
            return _describe(index, before, after, earlier, later)
    return None


def new_tool_items(earlier: Items, later: Items) -> bool:
    """Return whether the items behind the items of `earlier` add tools."""
    return any(item["type"] in TOOL_ITEMS for item in later[len(earlier) :])


def item_text(item: Mapping[str, Any]) -> str:
    """Return the first text of an item: of a message, a reasoning item, an output or the arguments of a call."""
    for key in ("content", "summary", "output", "arguments", "input"):
        value = item.get(key)
        if isinstance(value, str) and value:
            return value
        for part in value if isinstance(value, list) else ():
            if isinstance(part, Mapping) and isinstance(part.get("text"), str) and part["text"]:
                return str(part["text"])
    return ""


def _describe(index: int, before: list[Any], after: list[Any], earlier: Items, later: Items) -> tuple[int, str, str]:
    if index + 1 < len(before) and after[index] == before[index + 1]:
        return index, _name(earlier[index]), "removed"
    if index + 1 < len(after) and after[index + 1] == before[index]:
        return index, _name(later[index]), "inserted"
    kind = "edited" if earlier[index]["type"] == later[index]["type"] else "replaced"
    return index, _name(earlier[index]), kind


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['role']} message" if item.get("role") else str(item["type"])


def _shown(value: Any) -> Any:
    """Return the fields that a prompt may show, in one form: a single text part is the same as the text."""
    if isinstance(value, Mapping):
        if value.get("type") in _TEXT_TYPES:
            return value.get("text")
        return {key: _shown(one) for key, one in value.items() if key not in _HIDDEN and one not in (None, [], {})}
    if isinstance(value, list | tuple):
        shown = [_shown(one) for one in value]
        return shown[0] if len(shown) == 1 and isinstance(shown[0], str) else shown
    return value
