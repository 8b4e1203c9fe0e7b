"""Comparison of two prompts: the shared prefix, the lost tokens, and the reason. Pure: reads no rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final, TypeAlias

from responses_app.runs.create_request import CreateRequest
from responses_app.store.log.rows.round_prompts import shared_length

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


# Tokens in a block of vLLM's prefix cache: only whole blocks are reused.
BLOCK_TOKENS: Final = 16
INPUT: Final = "input_changed"
# Characters of a text that are searched in a decoded prompt.
_SAMPLE: Final = 40


@dataclass(frozen=True, slots=True)
class PromptRecord:
    """Prompt of a response with what decided it. `items` are all items of the context, oldest first; `day` is the date in UTC.

    `answer` has the output items of the response, of which the last prompt of several rounds contains a part: none with
    `is_single_round`.
    """

    model: str
    request: CreateRequest
    items: Items
    prompt: Sequence[int]
    day: date
    answer: Items = ()
    is_single_round: bool = False


@dataclass(frozen=True, slots=True)
class RequestChange:
    """Difference between two requests. `reason` is the word of the API, `text` a sentence for the page."""

    reason: str
    text: str


@dataclass(frozen=True, slots=True)
class PrefixComparison:
    """Result in tokens. `shared` is the common prefix of the prompts, `reusable` the part in the same cache.

    `missed` counts the tokens in whole blocks that had to be computed again. `changes` begin with the reason; without missed tokens
    they explain nothing.
    """

    shared: int
    reusable: int
    missed: int
    changes: Sequence[RequestChange]


def compare(
    earlier: PromptRecord, later: PromptRecord, cached: int | None = None, decode: Callable[[Sequence[int]], str] | None = None
) -> PrefixComparison:
    """Compare the prompt of `later` with the last prompt of `earlier`. `cached` are the tokens that the engine took from the cache.

    `decode` turns tokens into text, to tell a changed date, omitted reasoning and truncation from a changed template.
    """
    shared = shared_length(earlier.prompt, later.prompt)
    separate = _separate_caches(earlier, later)
    reusable = 0 if separate else shared
    # The engine computes at least the last token of a prompt.
    possible = _whole_blocks(min(len(earlier.prompt), len(later.prompt) - 1))
    missed = max(0, possible - _whole_blocks(max(reusable, cached or 0)))
    # Many templates write the beginning of an answer in another way once the answer is complete.
    is_answer_start = len(earlier.prompt) - shared < BLOCK_TOKENS
    items = earlier.items if is_answer_start or earlier.is_single_round else [*earlier.items, *earlier.answer]
    changes = [*separate, *_request_changes(earlier, later), *_item_changes(items, earlier, later)]
    result = PrefixComparison(shared, reusable, missed, changes)
    if missed == 0 or changes:
        return result
    if is_answer_start:
        return replace(result, missed=0)
    return replace(result, changes=[_unexplained(earlier, later, shared, decode)])


def _whole_blocks(tokens: int) -> int:
    return tokens // BLOCK_TOKENS * BLOCK_TOKENS


def _separate_caches(earlier: PromptRecord, later: PromptRecord) -> list[RequestChange]:
    """Return the changes for which an engine has a separate cache."""
    changes = []
    if earlier.model != later.model:
        changes.append(RequestChange("model_changed", f"The model changed from {earlier.model} to {later.model}."))
    if (earlier.request.cache_key or None) != (later.request.cache_key or None):
        changes.append(
            RequestChange("prompt_cache_key_changed", "prompt_cache_key changed, and each key has a cache of its own.")
        )
    return changes


def _request_changes(earlier: PromptRecord, later: PromptRecord) -> list[RequestChange]:
    old, new = earlier.request, later.request
    added = new_tool_items([*earlier.items, *earlier.answer], later.items)
    facts = (
        (list(old.tools) != list(new.tools), RequestChange("tools_changed", _tools_text(old.tools, new.tools))),
        (added, RequestChange("tools_changed", "New input items add tools, which the prompt names at its beginning.")),
        (old.tool_choice != new.tool_choice, RequestChange("tools_changed", "tool_choice changed.")),
        (old.format != new.format, RequestChange("text_format_changed", "text.format changed.")),
        (_effort(earlier) != _effort(later), RequestChange("reasoning_effort_changed", _effort_text(earlier, later))),
        (
            _is_compacted(earlier, later),
            RequestChange("context_compacted", "A compaction replaced earlier items by a summary."),
        ),
        ((old.instructions or "") != (new.instructions or ""), RequestChange(INPUT, "instructions changed.")),
        (_reasoning(old, "context") != _reasoning(new, "context"), RequestChange(INPUT, "reasoning.context changed.")),
    )
    return [change for applies, change in facts if applies]


def _item_changes(items: Items, earlier: PromptRecord, later: PromptRecord) -> list[RequestChange]:
    if _is_compacted(earlier, later):
        return []
    difference = find_item_change(items, later.items)
    if difference is None:
        return []
    index, name, kind = difference
    reason = "tools_changed" if name in ("mcp_list_tools", "additional_tools") else INPUT
    return [RequestChange(reason, f"Item {index + 1} of the context ({name}) was {kind}.")]


def _unexplained(
    earlier: PromptRecord, later: PromptRecord, shared: int, decode: Callable[[Sequence[int]], str] | None
) -> RequestChange:
    """Return the reason of a difference between the prompts of requests that do not differ."""
    if decode is not None:
        old, new = decode(earlier.prompt), decode(later.prompt)
        if earlier.day != later.day and any(day in old and day not in new for day in _dates(earlier.day)):
            return RequestChange(INPUT, f"The date in the prompt changed from {earlier.day} to {later.day}.")
        for item in (*earlier.items, *earlier.answer):
            sample = item_text(item)[:_SAMPLE]
            if sample and sample in old and sample not in new:
                return RequestChange(INPUT, _omission(item, later))
    return RequestChange(
        "model_changed", f"The requests agree up to token {shared}: the server renders this prompt with another template."
    )


def _omission(item: Mapping[str, Any], later: PromptRecord) -> str:
    if item["type"] == "reasoning":
        return "The template omits the reasoning of earlier turns."
    return "truncation dropped the oldest items." if later.request.truncation != "disabled" else "An item was omitted."


def _dates(day: date) -> Sequence[str]:
    return (day.isoformat(), *(day.strftime(form) for form in ("%d %b %Y", "%d %B %Y", "%B %d, %Y")))


def _is_compacted(earlier: PromptRecord, later: PromptRecord) -> bool:
    """Return whether the later context has a compaction that the earlier prompt did not have."""
    before, after = ([item for item in one.items if item["type"] == "compaction"] for one in (earlier, later))
    return len(after) > len(before)


def _reasoning(request: CreateRequest, name: str) -> Any:
    return (request.reasoning or {}).get(name)


def _effort(record: PromptRecord) -> Any:
    """Return the effort of the request, or that of the last configuration update."""
    updates = [item.get("reasoning", {}).get("effort") for item in record.items if item["type"] == "configuration_update"]
    return next(filter(None, reversed(updates)), _reasoning(record.request, "effort"))


def _effort_text(earlier: PromptRecord, later: PromptRecord) -> str:
    return f"reasoning.effort changed from {_effort(earlier) or 'the default'} to {_effort(later) or 'the default'}."


def _tools_text(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> str:
    before, after = ({_tool_name(tool): tool for tool in tools} for tools in (old, new))
    parts = [f"{name} was removed" for name in before if name not in after]
    parts += [f"{name} was added" for name in after if name not in before]
    parts += [f"{name} was edited" for name in after if name in before and before[name] != after[name]]
    return f"tools changed: {', '.join(parts[:5]) or 'their order'}."


def _tool_name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("server_label") or tool["type"])
