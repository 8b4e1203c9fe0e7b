"""Blocks of the conversation view: messages, reasoning, calls with outputs, and images; long texts are truncated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.safestring import SafeString

from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.content.tool_outputs import ToolOutputSummary
from responses_app.web.render import mcp_fields, tool_fields
from responses_app.web.render.markdown import markdown
from responses_app.web.render.result_pictures import ResultPicture, picture_urls
from responses_app.web.render.sanitize import pretty_json, truncate, visible

# Shown characters of a text of a message, and of a field of any other item.
MAX_TEXT_CHARS: Final = 20_000
MAX_FIELD_CHARS: Final = 4_000
# Characters that a page renders as Markdown; further texts are shown as plain text.
MAX_MARKDOWN_CHARS: Final = 60_000
# A `.code` box shows 22 lines; on a narrow screen a line has about 40 characters.
SCROLLING_CHARS: Final = 600
SCROLLING_LINES: Final = 15
# Types of items that answer calls, or requests for approval.
OUTPUT_TYPES: Final = frozenset({*FAMILIES.calls_by_output, "mcp_approval_response"})
TOOL_KINDS: Final = {**mcp_fields.KINDS, **tool_fields.KINDS}
# The text field of each type of content part.
TEXT_FIELDS: Final = {
    "input_text": "text",
    "output_text": "text",
    "reasoning_text": "text",
    "summary_text": "text",
    "refusal": "refusal",
}


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Part of a block: plain text, rendered Markdown, or the position of an image in the item."""

    text: str = ""
    html: SafeString | None = None
    left_out: int = 0
    image: int | None = None
    note: str = ""

    @property
    def scrolls(self) -> bool:
        """Return True if the text may overflow a `.code` box. A scrolling box must accept the keyboard focus."""
        return len(self.text) > SCROLLING_CHARS or self.text.count("\n") > SCROLLING_LINES


@dataclass(slots=True)
class ItemBlock:
    """Rendered item. `pair` is the output of a call; `output_response` is the id of a later response with the output.

    `took_ms` is the duration of a tool that the server ran.
    """

    uid: str
    type: str
    role: str
    status: str
    title: str
    parts: list[BlockPart]
    call_id: str = ""
    pair: ItemBlock | None = None
    output_response: str = ""
    incoming: bool = False
    took_ms: int | None = None

    @property
    def shape(self) -> str:
        """Return the layout: `message`, `reasoning` or `call`."""
        if self.type == "reasoning":
            return "reasoning"
        return "message" if self.type == "message" else "call"


@dataclass(slots=True)
class ItemRenderer:
    """Renderer of items as blocks, with a budget of Markdown characters per page.

    `tool_outputs` are stored outputs of server tools for the model, by item id.
    """

    markdown_budget: int = MAX_MARKDOWN_CHARS
    tool_outputs: Mapping[str, ToolOutputSummary] = field(default_factory=dict)
    _calls: dict[str, ItemBlock] = field(default_factory=dict)

    def blocks(self, items: Iterable[Mapping[str, Any]], *, incoming: bool) -> list[ItemBlock]:
        """Render `items`. An output is attached to a call rendered earlier by the same renderer."""
        blocks = []
        for item in items:
            block = self._block(item, incoming)
            call = self._calls.get(block.call_id) if block.type in OUTPUT_TYPES else None
            if call is not None and call.pair is None:
                call.pair = block
                continue
            if block.call_id and block.type not in OUTPUT_TYPES:
                self._calls[block.call_id] = block
            blocks.append(block)
        return blocks

    def _block(self, item: Mapping[str, Any], incoming: bool) -> ItemBlock:
        kind = str(item.get("type") or "message")
        parts = self._message(item) if kind in ("message", "reasoning") else [*_fields(item, kind), *self._model_output(item)]
        return ItemBlock(
            uid=str(item.get("id") or ""),
            type=kind,
            role=visible(str(item.get("role") or "")),
            status=str(item.get("status") or ""),
            title=_title(item, kind),
            parts=parts,
            call_id=call_id_of(item),
            incoming=incoming,
        )

    def _model_output(self, item: Mapping[str, Any]) -> Iterable[BlockPart]:
        """Render the output that only the model reads, unless the item shows an output."""
        output = self.tool_outputs.get(str(item.get("id")))
        if output is None or item.get("outputs") or item.get("results"):
            return
        first = len(picture_urls(item))
        if output.text:
            text, left_out = truncate(output.text, MAX_FIELD_CHARS)
            yield BlockPart(text=text, note="read by the model")
            if left_out:
                yield BlockPart(note=f"{left_out} more characters")
        yield from (BlockPart(image=first + position) for position in range(output.pictures))

    def _message(self, item: Mapping[str, Any]) -> list[BlockPart]:
        content = item.get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or ())
        summary = [] if _copies(item.get("summary"), content) else list(item.get("summary") or ())
        shown = [self._part(part, position) for position, part in enumerate([*summary, *parts]) if isinstance(part, Mapping)]
        encrypted = item.get("encrypted_content")
        return shown or ([BlockPart(note=f"Encrypted reasoning, {len(str(encrypted))} characters")] if encrypted else [])

    def _part(self, part: Mapping[str, Any], position: int) -> BlockPart:
        kind = str(part.get("type"))
        if kind == "input_image":
            return BlockPart(image=position)
        if kind not in TEXT_FIELDS:
            text, left_out = truncate(json.dumps(part, ensure_ascii=False), MAX_FIELD_CHARS)
            return BlockPart(text=text, left_out=left_out, note=kind)
        text = str(part.get(TEXT_FIELDS[kind]) or "")
        if kind in ("output_text", "summary_text") and len(text) <= min(self.markdown_budget, MAX_TEXT_CHARS):
            self.markdown_budget -= len(text)
            return BlockPart(html=markdown(text))
        shown, left_out = truncate(text, MAX_TEXT_CHARS)
        return BlockPart(text=shown, left_out=left_out, note="refusal" if kind == "refusal" else "")


def _copies(summary: object, content: object) -> bool:
    """Return whether a summary repeats the content, so that the text is shown once."""
    return _texts(summary) == _texts(content)


def _texts(parts: object) -> list[str]:
    return [str(part.get("text")) for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []


def call_id_of(item: Mapping[str, Any]) -> str:
    """Return the id that connects a call with its output, or a request for approval with the response."""
    if item.get("type") == "mcp_approval_request":
        return str(item.get("id") or "")
    return (
        str(item.get("approval_request_id") or "")
        if item.get("type") == "mcp_approval_response"
        else str(item.get("call_id") or "")
    )


def _title(item: Mapping[str, Any], kind: str) -> str:
    names = [item.get("server_label"), item.get("name")]
    named = ": ".join([kind, *(name[:200] for name in names if isinstance(name, str) and name)])
    return visible(named)


def _fields(item: Mapping[str, Any], kind: str) -> Iterable[BlockPart]:
    """Render the type-specific fields of any item except messages and reasoning."""
    if kind in OUTPUT_TYPES and isinstance(item.get("output"), list):
        for position, part in enumerate(item["output"]):
            if isinstance(part, Mapping) and part.get("type") in ("input_image", "computer_screenshot"):
                yield BlockPart(image=position)
            else:
                yield _text(part.get("text", part) if isinstance(part, Mapping) else part)
        return
    if kind in TOOL_KINDS:
        for value in TOOL_KINDS[kind](item):
            yield BlockPart(image=value.position) if isinstance(value, ResultPicture) else _text(value)
        return
    names: Sequence[str] = [
        key for key in ("arguments", "input", "code", "output", "action", "result") if item.get(key) is not None
    ]
    for key in names:
        yield _text(item[key])
    if not names:
        skipped = ("id", "type", "status")
        yield _text({key: value for key, value in item.items() if key not in skipped})


def _text(value: Any) -> BlockPart:
    if isinstance(value, str) and len(value) <= MAX_FIELD_CHARS and value[:1] in "{[":
        try:
            return BlockPart(text=pretty_json(json.loads(value)))
        except ValueError:
            pass
    text, left_out = truncate(
        value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False), MAX_FIELD_CHARS
    )
    return BlockPart(text=text, left_out=left_out)
