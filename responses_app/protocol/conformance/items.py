"""Item rules I1 to I7: identity, opening and end of an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.protocol.conformance.parts import (
    CONTENT,
    PART_EVENTS,
    SUMMARY,
    TEXT_KEYS,
    PartList,
    PartRules,
    check_part_opens_empty,
)
from responses_app.protocol.conformance.spec import MISSING, ItemSpec, StreamSpec, is_vendor_type
from responses_app.protocol.conformance.streams import ArgumentStream, Commands, ToolProgress
from responses_app.protocol.conformance.violation import Findings, integer

# Events of shell calls have a command_index in place of an item_id.
WITHOUT_ITEM_ID: Final = frozenset({"shell_call_command"})


class ItemRules:
    """Rules of an item, and the events so far. `known` is False for an item that opened before a resumed stream began."""

    def __init__(self, index: int, opened: Mapping[str, Any], spec: StreamSpec, *, known: bool = True) -> None:
        self.index = index
        self.known = known
        self.opened = opened
        self.id = opened.get("id")
        self.type = opened.get("type")
        self.done: Mapping[str, Any] | None = None
        # List of parts -> the open part. A reasoning item may have an open part in each of its lists.
        self.open_parts: dict[str, PartRules] = {}
        self.closed: dict[str, list[Any]] = {"content": [], "summary": []}
        self.stream_spec = spec
        self.spec = spec.items.get(str(self.type)) or ItemSpec(type=str(self.type))
        stream, stages = self.spec.argument_stream, self.spec.stages
        self.arguments = None if stream is None else ArgumentStream(stream[1], known=known)
        self.progress = None if stages is None else ToolProgress(stages, known=known)
        self.commands = Commands(known=known)

    def open(self) -> Findings:
        """Check the opening payload: rules I1 and I2."""
        if not isinstance(self.id, str) or not self.id:
            yield "I2", f"the item opens with id {self.id!r}"
        if self.opened.get("status", "in_progress") in ("completed", "incomplete", "failed") and self.spec.empty:
            yield "I1", f"the item opens {self.opened['status']}"
        for key, empty in self.spec.empty.items():
            if self.opened.get(key, MISSING) not in empty:
                yield "I1", f"the item opens with {key} {self.opened.get(key, MISSING)!r}"
        for key in self.spec.named:
            if not isinstance(self.opened.get(key), str) or not self.opened[key]:
                yield "I1", f"the item opens with {key} {self.opened.get(key, MISSING)!r}"
        if self.type == "web_search_call" and not _is_empty_action(self.opened.get("action")):
            yield "I1", "the search opens with an action"

    def on_event(self, event: Mapping[str, Any]) -> Findings:
        """Check an event between `added` and `done`."""
        name = event["type"].removeprefix("response.")
        word = name.partition(".")[0]
        if word not in WITHOUT_ITEM_ID and event.get("item_id") != self.id:
            yield "I2", f"item_id is {event.get('item_id')!r}, the item at {self.index} is {self.id!r}"
        if self.done is not None:
            yield "I4", f"the item {self.id!r} is done already"
            return
        if self.known and self.type not in self.stream_spec.owners.get(word, (self.type,)):
            yield "I3", f"no event for an item {self.type!r}"
            return
        if name in PART_EVENTS:
            yield from self._part_event(name, event)
        elif word in WITHOUT_ITEM_ID:
            yield from self.commands.on_progress(name.partition(".")[2], event)
        elif self.arguments is not None and self.spec.argument_stream is not None and word == self.spec.argument_stream[0]:
            yield from self.arguments.delta(event) if name.endswith(".delta") else self.arguments.done(event)
        elif self.progress is not None and word == self.type:
            yield from self.progress.on_progress(name.partition(".")[2], self.arguments)

    def close(self, item: object) -> Findings:
        """Check `output_item.done`: I2, I4, I6, I7, C5, C6, C7, R3."""
        if self.done is not None:
            yield "I4", f"the item {self.id!r} is done twice"
            return
        if not isinstance(item, Mapping):
            yield "I2", f"the done item is {item!r}"
            return
        self.done = item
        if self.known:
            yield from self._check_identity(item)
        yield from self._check_status(item)
        for part in self.open_parts.values():
            yield "C5", f"the item is done and its part {part.index} is open"
        if self.known:
            yield from self._check_contents(item)

    def _check_identity(self, item: Mapping[str, Any]) -> Findings:
        for key in ("id", "type", "call_id"):
            if item.get(key) != self.opened.get(key):
                yield "I2", f"{key} was {self.opened.get(key)!r} and is {item.get(key)!r}"

    def _check_status(self, item: Mapping[str, Any]) -> Findings:
        kind, status = item.get("type"), item.get("status")
        spec = self.stream_spec.items.get(str(kind))
        finals = None if spec is None else spec.final_statuses
        if status is not None and finals is not None and str(status) not in finals:
            yield "I6", f"a done {kind} is {status!r}"
        elif status == "in_progress" and not is_vendor_type(str(kind)):
            yield "I6", "a done item is in_progress"

    def _check_contents(self, item: Mapping[str, Any]) -> Findings:
        if self.arguments is not None:
            yield from self.arguments.close(item)
        if self.progress is not None:
            yield from self.progress.close(item)
        yield from self.commands.close(item)
        if self.type in ("message", "reasoning") and CONTENT.key not in self.open_parts:
            yield from self._check_part_list(CONTENT, item)
        if self.type == "reasoning" and SUMMARY.key not in self.open_parts:
            yield from self._check_part_list(SUMMARY, item)

    def _check_part_list(self, parts: PartList, item: Mapping[str, Any]) -> Findings:
        closed = self.closed[parts.key]
        if _comparable(item.get(parts.key) or []) != _comparable(closed):
            yield parts.listed, f"{parts.key} of the item is not the parts that were closed"

    def _part_event(self, name: str, event: Mapping[str, Any]) -> Findings:
        act, parts, kind = PART_EVENTS[name]
        index = integer(event.get(parts.index_key))
        if act == "open":
            yield from self._open_part(parts, index, event)
            return
        if not self.known and parts.key not in self.open_parts:
            # The part opened before the resume.
            self.open_parts[parts.key] = PartRules(parts, index or 0, kind, known=False)
        part = self.open_parts.get(parts.key)
        if part is None or part.index != index:
            rule = "C5" if act == "close" else "C2"
            yield rule, f"no part is open at {parts.index_key} {event.get(parts.index_key)!r}"
        elif kind is not None and part.kind not in (kind, None):
            yield "C2", f"the open part is {part.kind!r}"
        elif act == "close":
            yield from part.close(event.get("part"))
            self.closed[parts.key].append(event.get("part"))
            del self.open_parts[parts.key]
        else:
            part.kind = kind
            yield from {"delta": part.delta, "done": part.done, "annotate": part.annotate}[act](event)

    def _open_part(self, parts: PartList, index: int | None, event: Mapping[str, Any]) -> Findings:
        before = self.open_parts.get(parts.key)
        expected = len(self.closed[parts.key]) + (before is not None)
        if index is None or (self.known and index != expected):
            yield parts.order, f"{parts.index_key} is {event.get(parts.index_key)!r} and not {expected}"
        if before is not None:
            yield parts.order, f"part {before.index} is still open"
        part = event.get("part")
        if self.known or self.type is not None:
            yield from check_part_opens_empty(parts, self.type, part)
        kind = part.get("type") if isinstance(part, Mapping) else None
        self.open_parts[parts.key] = PartRules(parts, expected if index is None else index, kind)


def _is_empty_action(action: object) -> bool:
    return action is None or (isinstance(action, Mapping) and not any(v for k, v in action.items() if k != "type"))


def _comparable(parts: object) -> object:
    # OpenAI leaves logprobs empty in content_part.done, so rule C9 alone compares them.
    if not isinstance(parts, list):
        return parts
    keys = set(TEXT_KEYS.values()) | {"type", "annotations"}
    return [{k: v for k, v in part.items() if k in keys} if isinstance(part, Mapping) else part for part in parts]
