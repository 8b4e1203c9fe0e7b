"""The open part of an item: it opens empty, it says its text, it closes whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from responses_app.protocol import events, items
from responses_app.protocol.events import Event
from responses_app.protocol.items import Item


class PartSpec(NamedTuple):
    """How one type of part speaks: its empty form, its four events, the key of its text, and where in the item it goes."""

    empty: Callable[[], Item]
    added: Callable[[str, int, int, Item], Event]
    delta: Callable[[str, int, int, str], Event]
    done: Callable[[str, int, int, str], Event]
    closed: Callable[[str, int, int, Item], Event]
    key: str
    shelf: str


def _text_delta(item_id: str, output_index: int, index: int, delta: str) -> Event:
    return events.text_delta(item_id, output_index, index, delta, ())


def _text_done(item_id: str, output_index: int, index: int, text: str) -> Event:
    return events.text_done(item_id, output_index, index, text, ())


VOICES: Final = {
    "output_text": PartSpec(items.text_part, events.part_added, _text_delta, _text_done, events.part_done, "text", "content"),
    "refusal": PartSpec(
        items.refusal_part,
        events.part_added,
        events.refusal_delta,
        events.refusal_done,
        events.part_done,
        "refusal",
        "content",
    ),
    "reasoning_text": PartSpec(
        items.reasoning_part,
        events.part_added,
        events.reasoning_delta,
        events.reasoning_done,
        events.part_done,
        "text",
        "content",
    ),
    "summary_text": PartSpec(
        items.summary_part,
        events.summary_part_added,
        events.summary_delta,
        events.summary_done,
        events.summary_part_done,
        "text",
        "summary",
    ),
}


class OpenPart:
    """An open part. Its text is kept as a list and joined once, at the end: `+=` on a snapshot costs more with every token."""

    __slots__ = ("at", "said", "type", "voice")

    def __init__(self, type_: str, item_id: str, output_index: int, index: int) -> None:
        self.type = type_
        self.voice = VOICES[type_]
        self.at = (item_id, output_index, index)
        self.said: list[str] = []

    def open(self) -> Event:
        """The part opens, empty."""
        return self.voice.added(*self.at, self.voice.empty())

    def append(self, text: str, _logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """More of its text."""
        self.said.append(text)
        return self.voice.delta(*self.at, text)

    def close(self) -> tuple[list[Event], Item]:
        """The last two events of the part, and the part as it stays in its item."""
        text = "".join(self.said)
        whole = {**self.voice.empty(), self.voice.key: text}
        return [self.voice.done(*self.at, text), self.voice.closed(*self.at, whole)], whole


class OpenTextPart(OpenPart):
    """An open output text, which also carries log-probabilities and citations."""

    __slots__ = ("annotations", "logprobs")

    def __init__(self, item_id: str, output_index: int, index: int) -> None:
        super().__init__("output_text", item_id, output_index, index)
        self.logprobs: list[Mapping[str, Any]] = []
        self.annotations: list[Mapping[str, Any]] = []

    def append(self, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """More text, with the log-probabilities of its tokens."""
        self.said.append(text)
        if logprobs:
            self.logprobs.extend(logprobs)
        item_id, output_index, index = self.at
        return events.text_delta(item_id, output_index, index, text, logprobs)

    def annotate(self, annotation: Mapping[str, Any]) -> Event:
        """A citation, numbered within the part."""
        self.annotations.append(annotation)
        return events.annotation_added(*self.at, len(self.annotations) - 1, annotation)

    def close(self) -> tuple[list[Event], Item]:
        """`output_text.done` and `content_part.done`, and the part with its citations and log-probabilities."""
        text = "".join(self.said)
        whole = {"type": "output_text", "text": text, "annotations": self.annotations, "logprobs": self.logprobs}
        return [events.text_done(*self.at, text, self.logprobs), events.part_done(*self.at, whole)], whole


def new_part(type_: str, item_id: str, output_index: int, index: int) -> OpenPart:
    """A part of this type, about to open."""
    return (
        OpenTextPart(item_id, output_index, index) if type_ == "output_text" else OpenPart(type_, item_id, output_index, index)
    )
