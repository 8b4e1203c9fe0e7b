"""Message: the text that the user reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from responses_app.protocol.content_parts import OpenPart, Part, PartSpec
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import COMPLETED_OR_INCOMPLETE, Delta, Family, Item, Json
from responses_app.protocol.items.parted import PartedItem

OUTPUT_TEXT: Final = PartSpec(
    type="output_text",
    added="response.content_part.added",
    delta="response.output_text.delta",
    done="response.output_text.done",
    closed="response.content_part.done",
    list_keys=("annotations", "logprobs"),
)
ANNOTATION_ADDED: Final = "response.output_text.annotation.added"


@dataclass(slots=True)
class TextDelta(Delta):
    """Visible text of a message. A change of `phase` starts a new message."""

    text: str
    logprobs: Sequence[Json] = ()
    phase: Literal["commentary", "final_answer"] | None = None


@dataclass(slots=True)
class Annotation(Delta):
    """Citation of the open text part, in the wire form."""

    value: Json


class OpenTextPart(OpenPart):
    """Open output text, with annotations and with log-probabilities of the tokens."""

    __slots__ = ("_index", "_item_id", "_output_index", "annotations", "logprobs")

    def __init__(self, item_id: str, output_index: int, index: int) -> None:
        super().__init__(OUTPUT_TEXT, item_id, output_index, index)
        self._item_id, self._output_index, self._index = item_id, output_index, index
        self.logprobs: list[Json] = []
        self.annotations: list[Json] = []

    def append(self, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """Append `text` and the log-probabilities of the tokens; return the delta event."""
        self.texts.append(text)
        if logprobs:
            self.logprobs.extend(logprobs)
        return self.delta_event(text, logprobs)

    def delta_event(self, text: str, logprobs: Sequence[Mapping[str, Any]] = ()) -> Event:
        """Return the delta event of `text`."""
        return {
            "type": "response.output_text.delta",
            "item_id": self._item_id,
            "output_index": self._output_index,
            "content_index": self._index,
            "delta": text,
            "logprobs": list(logprobs),
        }

    def annotate(self, annotation: Json) -> Event:
        """Append `annotation`, numbered within the part."""
        self.annotations.append(annotation)
        number = len(self.annotations) - 1
        return {"type": ANNOTATION_ADDED, **self.location, "annotation_index": number, "annotation": annotation}

    def close(self) -> tuple[list[Event], Part]:
        """Return `output_text.done` and `content_part.done`, and the part with annotations and log-probabilities."""
        text = "".join(self.texts)
        part = {"type": "output_text", "text": text, "annotations": self.annotations, "logprobs": self.logprobs}
        done = {"type": OUTPUT_TEXT.done, **self.location, "text": text, "logprobs": list(self.logprobs)}
        return [done, {"type": OUTPUT_TEXT.closed, **self.location, "part": part}], part


class MessageItem(PartedItem):
    """An open message."""

    __slots__ = ("phase",)

    def __init__(self, family: Family, body: Item, index: int) -> None:
        super().__init__(family, body, index)
        self.phase = body.get("phase")

    def accepts(self, delta: Delta) -> bool:
        """Return whether `delta` is text of the phase of this message."""
        return isinstance(delta, TextDelta) and delta.phase == self.phase

    def append_encoded(self, delta: Any, number: int) -> EventFrame | None:
        """Append more text of the open part, without log-probabilities, and return the event; None for any other delta."""
        part = self.part
        if delta.__class__ is not TextDelta or part is None or not delta.text or delta.logprobs or delta.phase != self.phase:
            return None
        return part.append_encoded(delta.text, number)

    def annotate(self, delta: Annotation) -> list[Event]:
        """Annotate the open text. Raises ProtocolError without an open text."""
        if not isinstance(self.part, OpenTextPart):
            raise ProtocolError("a citation needs an open text part")
        return [self.part.annotate(delta.value)]

    def make_part(self, _spec: PartSpec, index: int) -> OpenTextPart:
        """Make the open text part at `index`."""
        return OpenTextPart(self.id, self.index, index)

    def replay(self, event: Json) -> None:
        """Apply a text delta, an annotation or the end of a part."""
        if event["type"] == ANNOTATION_ADDED:
            self.annotate(Annotation(event["annotation"]))
        else:
            super().replay(event)


def _initial(delta: TextDelta, _new_id: IdFactory) -> Item:
    # `phase` is a key only for models that have phases.
    phase = {} if delta.phase is None else {"phase": delta.phase}
    return {"status": "in_progress", "role": "assistant", "content": [], **phase}


MESSAGE: Final = Family(
    type="message",
    id_prefix="msg_",
    item=MessageItem,
    opened_by={TextDelta: ""},
    initial=_initial,
    parts={TextDelta: OUTPUT_TEXT},
    steps={Annotation: MessageItem.annotate},
    final_statuses=COMPLETED_OR_INCOMPLETE,
)
