"""The inverse of the writer: events in, the Response that they told.

Items are rebuilt from their first payload, their parts and their deltas; only what no other event tells (status, results,
actions) is taken from `output_item.done`, and nothing of the output is taken from the terminal snapshot. So `fold(events)`
equals the terminal snapshot only if the stream said what the snapshot says (laws 3 and 4, A6, A10).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from responses_app.protocol.errors import ProtocolError

Json: TypeAlias = Mapping[str, Any]

# event type -> (key of the delta's whole text in the part, the list of the item that the part stands in, the key of its index)
_DELTAS: Final = {
    "response.output_text.delta": ("text", "content", "content_index"),
    "response.refusal.delta": ("refusal", "content", "content_index"),
    "response.reasoning_text.delta": ("text", "content", "content_index"),
    "response.reasoning.delta": ("text", "content", "content_index"),
    "response.reasoning_summary_text.delta": ("text", "summary", "summary_index"),
}
# event type -> key of the text in the item
_CHANNELS: Final = {
    "response.function_call_arguments.delta": "arguments",
    "response.mcp_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.code_interpreter_call_code.delta": "code",
}
_STAGES: Final = frozenset({"searching", "interpreting", "generating"})
_SHELVES: Final = (("content", "content_index"), ("summary", "summary_index"))


class _Text:
    """A part: what its opening said, and the deltas since."""

    __slots__ = ("annotations", "key", "logprobs", "opening", "said")

    def __init__(self, opening: Json) -> None:
        self.opening = opening
        self.key = "refusal" if opening.get("type") == "refusal" else "text"
        self.said: list[str] = [opening.get(self.key) or ""]
        self.logprobs: list[Any] = list(opening.get("logprobs") or ())
        self.annotations: list[Any] = list(opening.get("annotations") or ())

    def whole(self) -> dict[str, Any]:
        lists = {"annotations": self.annotations, "logprobs": self.logprobs}
        return {**self.opening, self.key: "".join(self.said), **{k: list(v) for k, v in lists.items() if k in self.opening}}


class _Item:
    """An item: what its opening said, its parts and deltas since, and what its end adds."""

    __slots__ = ("channel", "commands", "done", "opening", "said", "shelves", "stage")

    def __init__(self, opening: Json) -> None:
        self.opening = opening
        self.shelves: dict[str, list[_Text]] = {}
        self.channel: str | None = None
        self.said: list[str] = []
        self.commands: list[str] = []
        self.stage: str | None = None
        self.done: Json | None = None

    def whole(self) -> dict[str, Any]:
        """The item, rebuilt. Keys that events told bit by bit are never read from its end."""
        told: dict[str, Any] = {key: [part.whole() for part in parts] for key, parts in self.shelves.items()}
        if self.channel is not None:
            told[self.channel] = "".join(self.said)
        if self.done is None and self.stage is not None:
            told["status"] = self.stage
        whole = {**(self.opening if self.done is None else self.done), **told}
        return {**whole, "action": {**whole["action"], "commands": self.commands}} if self.commands else whole


class Reducer:
    """The response as far as the events have told it."""

    def __init__(self) -> None:
        self.response: dict[str, Any] = {}
        self.items: dict[int, _Item] = {}
        self.ended = False

    def take(self, event: Json) -> None:
        if not self.response and event["type"] != "response.created":
            raise ProtocolError("these events do not begin with response.created")
        act = _ACTS.get(event["type"])
        if act is not None:
            act(self, event)
        elif "output_index" in event:
            self._stage(event)

    def snapshot(self, open_items: bool) -> dict[str, Any]:
        if not self.response:
            raise ProtocolError("there are no events")
        whole = [self.items[index] for index in sorted(self.items)]
        shown = [item.whole() for item in whole if open_items or self.ended or item.done is not None]
        return {**self.response, "output": shown}

    def _life(self, event: Json) -> None:
        self.response = dict(event["response"])

    def _last(self, event: Json) -> None:
        self._life(event)
        self.ended = True

    def _added(self, event: Json) -> None:
        self.items[event["output_index"]] = _Item(event["item"])

    def _done(self, event: Json) -> None:
        self._item(event).done = event["item"]

    def _part_added(self, event: Json) -> None:
        shelf = "summary" if "summary_index" in event else "content"
        self._item(event).shelves.setdefault(shelf, []).append(_Text(event["part"]))

    def _delta(self, event: Json) -> None:
        _, shelf, index = _DELTAS[event["type"]]
        part = self._part(event, shelf, index)
        part.said.append(event["delta"])
        if event.get("logprobs"):
            part.logprobs.extend(event["logprobs"])

    def _annotation(self, event: Json) -> None:
        self._part(event, "content", "content_index").annotations.append(event["annotation"])

    def _channel(self, event: Json) -> None:
        item = self._item(event)
        item.channel = _CHANNELS[event["type"]]
        item.said.append(event["delta"])

    def _command_added(self, event: Json) -> None:
        self._item(event).commands.append(event["command"])

    def _command(self, event: Json) -> None:
        try:
            self._item(event).commands[event["command_index"]] += event["delta"]
        except IndexError:
            raise ProtocolError(f"{event['type']} before its command") from None

    def _stage(self, event: Json) -> None:
        stage = event["type"].rpartition(".")[2]
        if stage in _STAGES:
            self._item(event).stage = stage

    def _item(self, event: Json) -> _Item:
        try:
            return self.items[event["output_index"]]
        except KeyError:
            raise ProtocolError(f"{event['type']} before its item") from None

    def _part(self, event: Json, shelf: str, index: str) -> _Text:
        try:
            return self._item(event).shelves[shelf][event[index]]
        except (KeyError, IndexError):
            raise ProtocolError(f"{event['type']} before its part") from None


_ACTS: Final[dict[str, Callable[[Reducer, Json], None]]] = {
    **dict.fromkeys(("response.created", "response.queued", "response.in_progress"), Reducer._life),
    **dict.fromkeys(("response.completed", "response.incomplete", "response.failed"), Reducer._last),
    "response.output_item.added": Reducer._added,
    "response.output_item.done": Reducer._done,
    "response.content_part.added": Reducer._part_added,
    "response.reasoning_summary_part.added": Reducer._part_added,
    "response.output_text.annotation.added": Reducer._annotation,
    "response.shell_call_command.added": Reducer._command_added,
    "response.shell_call_command.delta": Reducer._command,
    **dict.fromkeys(_DELTAS, Reducer._delta),
    **dict.fromkeys(_CHANNELS, Reducer._channel),
}


def fold(events: Iterable[Json], *, open_items: bool = False) -> dict[str, Any]:
    """The Response that these events told; a prefix of a stream gives the snapshot of a running one (§2.5).

    Items that are still open are left out, or shown as far as they were told with `open_items`. Events may be as logged or as
    sent: `obfuscation` and `stream_id` are ignored. Raises GrammarError for events without their opening.
    """
    folding = Reducer()
    for event in events:
        folding.take(event)
    return folding.snapshot(open_items)


def ids_in_order(events: Iterable[Json]) -> list[str]:
    """The ids that these events brought into being, in the order in which the writer asked its mint for them.

    A continued run (F1) gives its new writer a mint that hands these out first.
    """
    opened = (event["item"] for event in events if event["type"] == "response.output_item.added")
    return [item[key] for item in opened for key in ("id", "call_id") if item.get(key) is not None]
