"""Oldest items of a long context that need not be read: the turn before has dropped these, and a longer turn drops no less.

The items that a turn may skip are noted in this process, with the sum of their sizes. So the next turn reads the newest items alone, and
drops the same items as if everything had been read. Where that is not certain, everything is read.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

from responses_app.protocol.items.registry import FAMILIES
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.store.content.history import ConversationContext, SkippedItems, digest_keys

Items: TypeAlias = Sequence[Mapping[str, Any]]

# Contexts whose skipped items are noted, at most 80 KB each.
MAX_CONTEXTS: Final = 256
# Fewer items are read faster than noted.
MIN_ITEMS: Final = 32
TEXT_PARTS: Final = frozenset({"input_text", "output_text", "refusal"})

_noted: OrderedDict[tuple[str, str], SkippedItems] = OrderedDict()


class NeedsAllItems(Exception):
    """The result may depend on skipped items: all items of the context have to be read."""


def is_possible(context: PromptContext) -> bool:
    """Return True if the prompt of the request depends on dropped items by their sizes alone."""
    request = context.create_request
    return (
        request.truncation != "disabled"
        and (request.conversation is not None or request.previous_response_id is not None)
        and context.tools is None
        # A connection keeps all items for the next request.
        and context.token_cache is None
        and not (request.compacts or request.compact_threshold or request.comparison_response_id or request.rerun_of)
        and (request.reasoning or {}).get("context") != "current_turn"
        # Ids and compactions of the client may refer to any item.
        and all("id" not in item and item["type"] != "compaction" for item in request.input)
    )


def find(model: str, thread: str) -> SkippedItems | None:
    """Return the noted items of a thread that a request for `model` may skip."""
    skipped = _noted.get((model, thread))
    if skipped is not None:
        _noted.move_to_end((model, thread))
    return skipped


def remember(model: str, thread: str, skipped: SkippedItems | None) -> None:
    """Note the skippable items of a thread; with None, remove the note."""
    _noted.pop((model, thread), None)
    if skipped is not None and thread:
        _noted[model, thread] = skipped
        if len(_noted) > MAX_CONTEXTS:
            _noted.popitem(last=False)


def check_compactions(items: Items) -> None:
    """Check that no compaction among the read `items` replaces skipped items. Raises NeedsAllItems."""
    if _has_compaction(items):
        raise NeedsAllItems


def count_early(items: Items, units: Sequence[Sequence[int]], skipped: SkippedItems) -> int:
    """Return the number of units before the first item that is surely read. Raises NeedsAllItems if a unit has skipped items."""
    first = next((place for place, item in enumerate(items) if item.get("id") == skipped.first), None)
    early = sum(unit[0] < first for unit in units) if first is not None else 0
    if first is None or any((unit[-1] < first) != (number < early) for number, unit in enumerate(units)):
        raise NeedsAllItems
    if any("call_id" in item and _contains(skipped.calls, hash(item["call_id"])) for item in items):
        raise NeedsAllItems
    return early


def skip_units(
    before: ConversationContext, items: Items, units: Sequence[Sequence[int]], sizes: Sequence[int]
) -> SkippedItems | None:
    """Return the skippable items for the next turn: plain items of all `units` but the last, and the items skipped before.

    `sizes` are the sizes of all units before each of `units`. None if the units do not end at one place of the context.
    """
    places = {item["id"]: place for place, item in enumerate(before.items)}
    read = [[places.get(items[place].get("id"), len(places)) for place in unit] for unit in units]
    ends = [-1, *accumulate((unit[-1] for unit in read), max)]
    # An output behind the call of another unit: a cut between these would part a unit.
    end = next((number for number in reversed(range(len(read))) if ends[number] < read[number][0]), 0)
    if end == 0 or read[end][0] >= len(places) or _has_compaction(before.items):
        return before.skipped
    first, skipped = read[end][0], set[int]()
    size, calls = 0, array("q")
    for number, unit in enumerate(read[:end]):
        if all(_is_plain(before.items[place]) for place in unit):
            skipped.update(unit)
            size += sizes[number + 1] - sizes[number]
            calls.extend({hash(before.items[place]["call_id"]) for place in unit if "call_id" in before.items[place]})
    return _note(before, first, skipped, size, calls)


def _note(before: ConversationContext, first: int, skipped: set[int], size: int, calls: array[int]) -> SkippedItems | None:
    """Return the noted form of the items at the places `skipped` of `before`, in front of the place `first`."""
    earlier = before.skipped
    if earlier is not None:
        size, calls = size + earlier.size, earlier.calls + calls
    still_read = [place for place in range(first) if place not in skipped]
    shown = {
        before.items[place].get("call_id")
        for place in still_read
        if before.items[place]["type"] in FAMILIES.calls_by_output.values()
    }
    lone = [place for place in still_read if before.items[place]["type"] in FAMILIES.calls_by_output]
    if len(skipped) < MIN_ITEMS or any(before.items[place].get("call_id") not in shown for place in lone):
        return earlier
    count = first if earlier is None else earlier.count + first - len(earlier.still_read)
    uid, keys = str(before.items[first]["id"]), [before.keys[place] for place in still_read]
    return SkippedItems(count, digest_keys(before.history[:count]), keys, uid, size, array("q", sorted(calls)))


def _is_plain(item: Mapping[str, Any]) -> bool:
    """Return True if a dropped item matters by size alone."""
    kind = item["type"]
    if kind == "message":
        return item["role"] in ("user", "assistant") and _is_text(item["content"])
    if kind == "function_call":
        return "namespace" not in item
    return kind == "reasoning" or (kind == "function_call_output" and _is_text(item["output"]))


def _is_text(content: Any) -> bool:
    return isinstance(content, str) or all(part["type"] in TEXT_PARTS for part in content)


def _has_compaction(items: Items) -> bool:
    return any(item["type"] == "compaction" for item in items)


def _contains(numbers: array[int], number: int) -> bool:
    place = bisect_left(numbers, number)
    return place < len(numbers) and numbers[place] == number
