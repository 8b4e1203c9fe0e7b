"""Part rules C1 to C9 and R1 to R3: order, deltas and end of the parts of an item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from responses_app.protocol.conformance.violation import Findings, integer


class PartList(NamedTuple):
    """List of parts in an item: the key, the key of the index, and the rules for the order, a closed part and the list."""

    key: str
    index_key: str
    order: str
    closed: str
    listed: str


CONTENT: Final = PartList("content", "content_index", "C1", "C6", "C6")
SUMMARY: Final = PartList("summary", "summary_index", "R1", "R2", "R3")

# Part type -> key of its text.
TEXT_KEYS: Final = {"output_text": "text", "refusal": "refusal", "reasoning_text": "text", "summary_text": "text"}
# Item type and list of parts -> part types that the list may hold.
ALLOWED: Final = {
    ("message", "content"): ("output_text", "refusal"),
    ("reasoning", "content"): ("reasoning_text",),
    ("reasoning", "summary"): ("summary_text",),
}
# Event type without `response.` -> (effect, list of parts, required part type)
PART_EVENTS: Final = {
    "output_text.delta": ("delta", CONTENT, "output_text"),
    "output_text.done": ("done", CONTENT, "output_text"),
    "output_text.annotation.added": ("annotate", CONTENT, "output_text"),
    "refusal.delta": ("delta", CONTENT, "refusal"),
    "refusal.done": ("done", CONTENT, "refusal"),
    "reasoning_text.delta": ("delta", CONTENT, "reasoning_text"),
    "reasoning_text.done": ("done", CONTENT, "reasoning_text"),
    "reasoning.delta": ("delta", CONTENT, "reasoning_text"),
    "reasoning.done": ("done", CONTENT, "reasoning_text"),
    "reasoning_summary_text.delta": ("delta", SUMMARY, "summary_text"),
    "reasoning_summary_text.done": ("done", SUMMARY, "summary_text"),
    "content_part.added": ("open", CONTENT, None),
    "content_part.done": ("close", CONTENT, None),
    "reasoning_summary_part.added": ("open", SUMMARY, None),
    "reasoning_summary_part.done": ("close", SUMMARY, None),
}


class PartRules:
    """Rules of a part, and the events so far. `known` is False for a part that opened before a resumed stream began."""

    def __init__(self, parts: PartList, index: int, kind: object, *, known: bool = True) -> None:
        self.parts = parts
        self.index = index
        self.kind = kind
        self.known = known
        self.texts: list[str] = []
        self.logprobs: list[Any] = []
        self.annotations: list[Any] = []
        self.whole: str | None = None

    def delta(self, event: Mapping[str, Any]) -> Findings:
        """Check a delta: C2, C3 and C9."""
        if self.whole is not None:
            yield "C3", "a delta after the text was done"
        text = event.get("delta")
        if isinstance(text, str):
            self.texts.append(text)
        else:
            yield "C2", f"delta is {text!r} and no string"
        yield from self._check_logprobs(event)

    def annotate(self, event: Mapping[str, Any]) -> Findings:
        """Check an annotation: C8."""
        if self.whole is not None:
            yield "C8", "an annotation after the text was done"
        index = integer(event.get("annotation_index"))
        if index is None or (self.known and index != len(self.annotations)):
            yield "C8", f"annotation_index is {event.get('annotation_index')!r} and not {len(self.annotations)}"
        self.annotations.append(event.get("annotation"))

    def done(self, event: Mapping[str, Any]) -> Findings:
        """Check the whole text: C3 and C9."""
        text = event.get(TEXT_KEYS.get(str(self.kind), "text"))
        if self.whole is not None:
            yield "C3", "the text is done twice"
        elif not isinstance(text, str):
            yield "C3", f"the whole text is {text!r}"
        elif self.known and text != "".join(self.texts):
            yield "C3", "the whole text is not the text of the deltas"
        self.whole = text if isinstance(text, str) else "".join(self.texts)
        if self.kind == "output_text":
            yield from self._check_all_logprobs(event.get("logprobs"))

    def close(self, part: object) -> Findings:
        """Check the closed part: C4, C6, C8 and R2."""
        if self.whole is None and self.known:
            yield "C4", "the part closes and its text was never done"
        if not isinstance(part, Mapping):
            yield "C5", f"the closed part is {part!r}"
            return
        if self.known and part.get("type") != self.kind:
            yield "C1", f"the part opened as {self.kind!r} and closes as {part.get('type')!r}"
        if self.whole is not None and part.get(TEXT_KEYS.get(str(part.get("type")), "text")) != self.whole:
            yield self.parts.closed, "the closed part is not the text that was done"
        if self.known and self.kind == "output_text" and part.get("annotations") != self.annotations:
            yield "C8", "the closed part has other annotations than the events"

    def _check_logprobs(self, event: Mapping[str, Any]) -> Findings:
        if self.kind != "output_text":
            return
        logprobs = event.get("logprobs")
        if isinstance(logprobs, list):
            self.logprobs.extend(logprobs)
        else:
            yield "C9", f"logprobs is {logprobs!r} and no list"

    def _check_all_logprobs(self, logprobs: object) -> Findings:
        if not isinstance(logprobs, list):
            yield "C9", f"logprobs is {logprobs!r} and no list"
        elif self.known and logprobs != self.logprobs:
            yield "C9", "the whole logprobs are not those of the deltas"


def check_part_opens_empty(parts: PartList, item_type: object, part: object) -> Findings:
    """Check that `part` opens empty in an item that may hold such a part: rules C1 and R1."""
    if not isinstance(part, Mapping):
        yield parts.order, f"the part is {part!r}"
        return
    kind = part.get("type")
    if kind not in ALLOWED.get((str(item_type), parts.key), (kind,)):
        yield parts.order, f"a part {kind!r} in an item {item_type!r}"
    if part.get(TEXT_KEYS.get(str(kind), "text")) != "":
        yield parts.order, "the part does not open empty"
    if kind == "output_text" and (part.get("annotations") != [] or part.get("logprobs", []) != []):
        yield parts.order, "the part does not open with empty lists"
