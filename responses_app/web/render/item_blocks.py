"""Items as people read them: messages, folded reasoning, calls beside their outputs, pictures; long texts cut, with a way to the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.safestring import SafeString

from responses_app.web.render.markdown import markdown
from responses_app.web.render.sanitize import pretty_json, truncate, visible

# Characters that are shown of a text, and of all texts of a page as Markdown.
LONGEST: Final = 20_000
SHORT: Final = 4_000
RENDERED: Final = 60_000
# A `.code` box shows 22 lines; on a narrow screen a line has some 40 characters.
SCROLLING: Final = 600
SCROLLING_LINES: Final = 15
OUTPUT: Final = "_call_output"
TEXTS: Final = {
    "input_text": "text",
    "output_text": "text",
    "reasoning_text": "text",
    "summary_text": "text",
    "refusal": "refusal",
}


@dataclass(frozen=True, slots=True)
class BlockPart:
    """A piece of a block: plain text or Markdown made HTML, or the place of a picture in its item."""

    text: str = ""
    html: SafeString | None = None
    left_out: int = 0
    picture: int | None = None
    note: str = ""

    @property
    def scrolls(self) -> bool:
        """Whether the text may be higher than a `.code` box, which then scrolls and needs the focus of the keyboard."""
        return len(self.text) > SCROLLING or self.text.count("\n") > SCROLLING_LINES


@dataclass(slots=True)
class ItemBlock:
    """One item. `pair` is the output of a call; `elsewhere` says where it is, if not on this page."""

    uid: str
    type: str
    role: str
    status: str
    title: str
    parts: list[BlockPart]
    call_id: str = ""
    pair: ItemBlock | None = None
    elsewhere: str = ""
    incoming: bool = False

    @property
    def shape(self) -> str:
        """How it is shown."""
        if self.type == "reasoning":
            return "reasoning"
        return "message" if self.type == "message" else "call"


@dataclass(slots=True)
class ItemRenderer:
    """Reads items into blocks; remembers how much of them it has rendered."""

    left: int = RENDERED
    _calls: dict[str, ItemBlock] = field(default_factory=dict)

    def blocks(self, items: Iterable[Mapping[str, Any]], *, incoming: bool) -> list[ItemBlock]:
        """The blocks of these items; an output goes to its call, if that was read before."""
        found = []
        for item in items:
            block = self._block(item, incoming)
            call = self._calls.get(block.call_id) if block.type.endswith(OUTPUT) else None
            if call is not None and call.pair is None:
                call.pair = block
                continue
            if block.call_id and not block.type.endswith(OUTPUT):
                self._calls[block.call_id] = block
            found.append(block)
        return found

    def _block(self, item: Mapping[str, Any], incoming: bool) -> ItemBlock:
        kind = str(item.get("type") or "message")
        parts = self._message(item) if kind in ("message", "reasoning") else list(_fields(item, kind))
        return ItemBlock(
            uid=str(item.get("id") or ""),
            type=kind,
            role=visible(str(item.get("role") or "")),
            status=str(item.get("status") or ""),
            title=_title(item, kind),
            parts=parts,
            call_id=str(item.get("call_id") or ""),
            incoming=incoming,
        )

    def _message(self, item: Mapping[str, Any]) -> list[BlockPart]:
        content = item.get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or ())
        summary = [part for part in item.get("summary") or () if isinstance(part, Mapping)]
        told = [self._part(part, place) for place, part in enumerate([*summary, *parts]) if isinstance(part, Mapping)]
        sealed = item.get("encrypted_content")
        return told or ([BlockPart(note=f"Encrypted reasoning, {len(str(sealed))} characters")] if sealed else [])

    def _part(self, part: Mapping[str, Any], place: int) -> BlockPart:
        kind = str(part.get("type"))
        if kind == "input_image":
            return BlockPart(picture=place)
        if kind not in TEXTS:
            text, left_out = truncate(json.dumps(part, ensure_ascii=False), SHORT)
            return BlockPart(text=text, left_out=left_out, note=kind)
        text = str(part.get(TEXTS[kind]) or "")
        if kind in ("output_text", "summary_text") and len(text) <= min(self.left, LONGEST):
            self.left -= len(text)
            return BlockPart(html=markdown(text))
        shown, left_out = truncate(text, LONGEST)
        return BlockPart(text=shown, left_out=left_out, note="refusal" if kind == "refusal" else "")


def _title(item: Mapping[str, Any], kind: str) -> str:
    name = item.get("name")
    return visible(f"{kind}: {name[:200]}" if isinstance(name, str) and name else kind)


def _fields(item: Mapping[str, Any], kind: str) -> Iterable[BlockPart]:
    """What is its own of an item that is no message."""
    if kind.endswith(OUTPUT) and isinstance(item.get("output"), list):
        for place, part in enumerate(item["output"]):
            if isinstance(part, Mapping) and part.get("type") in ("input_image", "computer_screenshot"):
                yield BlockPart(picture=place)
            else:
                yield _text(part.get("text", part) if isinstance(part, Mapping) else part)
        return
    said: Sequence[str] = [
        key for key in ("arguments", "input", "code", "output", "action", "result") if item.get(key) is not None
    ]
    for key in said:
        yield _text(item[key])
    if not said:
        skipped = ("id", "type", "status")
        yield _text({key: value for key, value in item.items() if key not in skipped})


def _text(value: Any) -> BlockPart:
    if isinstance(value, str) and len(value) <= SHORT and value[:1] in "{[":
        try:
            return BlockPart(text=pretty_json(json.loads(value)))
        except ValueError:
            pass
    text, left_out = truncate(value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False), SHORT)
    return BlockPart(text=text, left_out=left_out)
