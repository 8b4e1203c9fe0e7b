"""Rules I1 to I7 for one item: its identity, its opening, its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.protocol.conformance.parts import CONTENT, KEYS, SPOKEN, SUMMARY, PartList, PartRules, check_part_opens_empty
from responses_app.protocol.conformance.spec import EMPTY, FINAL_STATUSES, MISSING, NAMED, is_vendor_type
from responses_app.protocol.conformance.streams import CHANNELS, STAGES, ArgumentStream, Commands, ToolProgress, is_json
from responses_app.protocol.conformance.violation import Findings, integer

# First word of an event name (without `response.`) -> types of the items that it may speak of.
OWNERS: Final = {
    "content_part": ("message", "reasoning"),
    "output_text": ("message",),
    "refusal": ("message",),
    "reasoning_text": ("reasoning",),
    "reasoning": ("reasoning",),
    "reasoning_summary_part": ("reasoning",),
    "reasoning_summary_text": ("reasoning",),
    "shell_call_command": ("shell_call",),
    "shell_call_output_content": ("shell_call_output",),
    **{name: (kind,) for kind, (name, _) in CHANNELS.items()},
    **{kind: (kind,) for kind in (*STAGES, "compaction")},
}
# Events of shell calls have a command_index in place of an item_id (§2.2, 21 to 23).
NAMELESS: Final = frozenset({"shell_call_command"})


class ItemRules:
    """An item as it was told. `known` is False for one that opened before a resumed stream began."""

    def __init__(self, index: int, opened: Mapping[str, Any], *, known: bool = True) -> None:
        self.index = index
        self.known = known
        self.opened = opened
        self.id = opened.get("id")
        self.type = opened.get("type")
        self.done: Mapping[str, Any] | None = None
        self.part: PartRules | None = None
        self.closed: dict[str, list[Any]] = {"content": [], "summary": []}
        kind = str(self.type)
        self.channel = ArgumentStream(CHANNELS[kind][1], known=known) if kind in CHANNELS else None
        self.progress = ToolProgress(kind, known=known) if kind in STAGES else None
        self.commands = Commands(known=known)

    def open(self) -> Findings:
        """I1: an item opens empty; I2: with an id."""
        if not isinstance(self.id, str) or not self.id:
            yield "I2", f"the item opens with id {self.id!r}"
        if self.opened.get("status", "in_progress") in ("completed", "incomplete", "failed") and str(self.type) in EMPTY:
            yield "I1", f"the item opens {self.opened['status']}"
        for key, blanks in EMPTY.get(str(self.type), {}).items():
            if self.opened.get(key, MISSING) not in blanks:
                yield "I1", f"the item opens with {key} {self.opened.get(key, MISSING)!r}"
        for key in NAMED.get(str(self.type), ()):
            if not isinstance(self.opened.get(key), str) or not self.opened[key]:
                yield "I1", f"the item opens with {key} {self.opened.get(key, MISSING)!r}"
        if self.type == "web_search_call" and not _blank(self.opened.get("action")):
            yield "I1", "the search opens with an action"

    def on_event(self, event: Mapping[str, Any]) -> Findings:
        """An event between the item's `added` and `done`."""
        name = event["type"].removeprefix("response.")
        owner = name.partition(".")[0]
        if owner not in NAMELESS and event.get("item_id") != self.id:
            yield "I2", f"item_id is {event.get('item_id')!r}, the item at {self.index} is {self.id!r}"
        if self.done is not None:
            yield "I4", f"the item {self.id!r} is done already"
            return
        if self.known and self.type not in OWNERS.get(owner, (self.type,)):
            yield "I3", f"no event for an item {self.type!r}"
            return
        if name in SPOKEN:
            yield from self._part_event(name, event)
        elif owner in NAMELESS:
            yield from self.commands.on_progress(name.partition(".")[2], event)
        elif self.channel is not None and owner == CHANNELS[str(self.type)][0]:
            yield from self.channel.delta(event) if name.endswith(".delta") else self.channel.done(event)
        elif self.progress is not None and owner == self.type:
            yield from self.progress.on_progress(name.partition(".")[2], self.channel)

    def close(self, item: object) -> Findings:
        """`output_item.done`: I2, I4, I6, I7, C5, C6, C7, R3."""
        if self.done is not None:
            yield "I4", f"the item {self.id!r} is done twice"
            return
        if not isinstance(item, Mapping):
            yield "I2", f"the done item is {item!r}"
            return
        self.done = item
        if self.known:
            yield from self._identity(item)
        yield from _check_status(item)
        if self.part is not None:
            yield "C5", f"the item is done and its part {self.part.index} is open"
        if self.known:
            yield from self._contents(item)

    def _identity(self, item: Mapping[str, Any]) -> Findings:
        for key in ("id", "type", "call_id"):
            if item.get(key) != self.opened.get(key):
                yield "I2", f"{key} was {self.opened.get(key)!r} and is {item.get(key)!r}"

    def _contents(self, item: Mapping[str, Any]) -> Findings:
        if self.channel is not None:
            yield from self.channel.close(item)
        if self.progress is not None:
            yield from self.progress.close(item)
        yield from self.commands.close(item)
        if self.type in ("message", "reasoning") and self.part is None:
            yield from self._shelf(CONTENT, item)
        if self.type == "reasoning":
            yield from self._shelf(SUMMARY, item)

    def _shelf(self, shelf: PartList, item: Mapping[str, Any]) -> Findings:
        told = self.closed[shelf.key]
        if _comparable(item.get(shelf.key) or []) != _comparable(told):
            yield shelf.listed, f"{shelf.key} of the item is not the parts that were closed"

    def _part_event(self, name: str, event: Mapping[str, Any]) -> Findings:
        act, shelf, kind = SPOKEN[name]
        index = integer(event.get(shelf.place))
        if act == "open":
            yield from self._open_part(shelf, index, event)
            return
        if self.part is None and not self.known:
            # It opened before the resume.
            self.part = PartRules(shelf, index or 0, kind, known=False)
        part = self.part
        if part is None or part.shelf is not shelf or part.index != index:
            rule = "C5" if act == "close" else "C2"
            yield rule, f"no part is open at {shelf.place} {event.get(shelf.place)!r}"
        elif kind is not None and part.kind not in (kind, None):
            yield "C2", f"the open part is {part.kind!r}"
        elif act == "close":
            yield from part.close(event.get("part"))
            self.closed[shelf.key].append(event.get("part"))
            self.part = None
        else:
            part.kind = kind
            yield from {"delta": part.delta, "done": part.done, "cite": part.cite}[act](event)

    def _open_part(self, shelf: PartList, index: int | None, event: Mapping[str, Any]) -> Findings:
        due = len(self.closed[shelf.key]) + (self.part is not None and self.part.shelf is shelf)
        if index is None or (self.known and index != due):
            yield shelf.order, f"{shelf.place} is {event.get(shelf.place)!r} and not {due}"
        if self.part is not None:
            yield shelf.order, f"part {self.part.index} is still open"
        part = event.get("part")
        if self.known or self.type is not None:
            yield from check_part_opens_empty(shelf, self.type, part)
        self.part = PartRules(shelf, due if index is None else index, part.get("type") if isinstance(part, Mapping) else None)


def _check_status(item: Mapping[str, Any]) -> Findings:
    kind, status = item.get("type"), item.get("status")
    finals = FINAL_STATUSES.get(str(kind))
    if status is not None and finals is not None and str(status) not in finals:
        yield "I6", f"a done {kind} is {status!r}"
    elif status == "in_progress" and not is_vendor_type(str(kind)):
        yield "I6", "a done item is in_progress"
    if kind == "function_call" and status in (None, "completed") and not is_json(item.get("arguments")):
        yield "C7", f"arguments do not parse: {item.get('arguments')!r:.80}"


def _blank(action: object) -> bool:
    return action is None or (isinstance(action, Mapping) and not any(v for k, v in action.items() if k != "type"))


def _comparable(parts: object) -> object:
    # OpenAI leaves logprobs empty in content_part.done, so they are compared through rule C9 alone.
    if not isinstance(parts, list):
        return parts
    keys = set(KEYS.values()) | {"type", "annotations"}
    return [{k: v for k, v in part.items() if k in keys} if isinstance(part, Mapping) else part for part in parts]
