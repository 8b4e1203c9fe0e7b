"""Items as data of their HTML fragments: messages, reasoning, calls with outputs, and images; long texts are truncated."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from responses_app.images.decode import ImageSize
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store.content.tool_outputs import ToolOutputSummary
from responses_app.web.render import mcp_fields, tool_fields
from responses_app.web.render.block_parts import (
    ARGUMENTS,
    MAX_FIELD_CHARS,
    RESULT,
    BlockPart,
    fenced_json,
    picture_part,
    text_part,
    truncated_part,
)
from responses_app.web.render.file_citations import file_address, with_links
from responses_app.web.render.item_titles import duration_text, is_unfinished, item_label, item_state, item_title
from responses_app.web.render.markdown import markdown
from responses_app.web.render.result_pictures import picture_urls
from responses_app.web.render.sanitize import visible

# Shown characters of a text of a message.
MAX_TEXT_CHARS: Final = 20_000
# Characters that a page renders as Markdown; further texts are shown as plain text.
MAX_MARKDOWN_CHARS: Final = 60_000
# Types of items that answer calls, or requests for approval.
OUTPUT_TYPES: Final = frozenset({*FAMILIES.calls_by_output, "mcp_approval_response"})
TOOL_KINDS: Final = {**mcp_fields.KINDS, **tool_fields.KINDS}
FIELD_LABELS: Final = {"arguments": ARGUMENTS, "input": ARGUMENTS, "output": RESULT, "result": RESULT}
# The text field of each type of content part.
TEXT_FIELDS: Final = {
    "input_text": "text",
    "output_text": "text",
    "reasoning_text": "text",
    "summary_text": "text",
    "refusal": "refusal",
}


@dataclass(slots=True)
class ItemBlock:
    """Item with the data of its HTML fragment.

    `pair` is the output of a call; `output_response` is the id of a later response with the output. `took_ms` is the
    duration of reasoning, or of a tool that the server ran. `raised` is the name of the exception that ended the code of a call.
    """

    item: Mapping[str, Any]
    parts: list[BlockPart]
    call_id: str = ""
    pair: ItemBlock | None = None
    output_response: str = ""
    took_ms: int | None = None
    raised: str = ""

    @property
    def uid(self) -> str:
        """Return the id of the item."""
        return str(self.item.get("id") or "")

    @property
    def type(self) -> str:
        """Return the type of the item."""
        return str(self.item.get("type") or "message")

    @property
    def shape(self) -> str:
        """Return the layout: `message`, `reasoning` or `call`."""
        return self.type if self.type in ("message", "reasoning") else "call"

    @property
    def speaker(self) -> str:
        """Return who wrote the item: the role of a message, `Tool` for an output, otherwise `Assistant`."""
        if self.type == "message":
            return visible(str(self.item.get("role") or "message")).capitalize()
        return "Tool" if self.type in OUTPUT_TYPES else "Assistant"

    @property
    def title(self) -> str:
        """Return the heading."""
        return item_title(self.item)

    @property
    def label(self) -> str:
        """Return the accessible name."""
        return item_label(self.item)

    @property
    def state(self) -> str:
        """Return the state, with the duration of a tool of the server that has ended."""
        state = item_state(self.item, is_answered=self.pair is not None)
        state = f"{state}, the code raised {self.raised}" if self.raised else state
        took = "" if self.took_ms is None or is_unfinished(self.item) else duration_text(self.took_ms / 1000)
        return " · ".join(filter(None, (state, took)))

    @property
    def mark(self) -> str:
        """Return the class of a state that is marked in the colour of a failure or of a warning; empty for any other."""
        status = self.item.get("status")
        if status == "failed" or (self.type == "mcp_list_tools" and self.item.get("error")):
            return "failed"
        return "incomplete" if status == "incomplete" or self.raised else ""

    @property
    def thought(self) -> str:
        """Return the label of reasoning."""
        if self.item.get("status") == "in_progress":
            return "Thinking"
        if self.took_ms is None:
            return "Thought"
        return f"Thought for {'less than 0.1 s' if self.took_ms < 100 else duration_text(self.took_ms / 1000)}"


# Fragments without text: scripts clone one for an item that the model still writes.
TEMPLATES: Final = [
    ItemBlock({"type": "message"}, []),
    ItemBlock({"type": "reasoning", "status": "in_progress"}, []),
    ItemBlock({"type": "function_call", "status": "in_progress"}, [BlockPart(label=ARGUMENTS)]),
]


@dataclass(slots=True)
class ItemRenderer:
    """Renderer of items as blocks, with a budget of Markdown characters per page.

    `tool_outputs` are stored outputs of server tools for the model, by item id. `picture_sizes` are sizes of stored input images, by
    the id of the item and the URL or the file id of the image.
    """

    markdown_budget: int = MAX_MARKDOWN_CHARS
    max_text_chars: int = MAX_TEXT_CHARS
    tool_outputs: Mapping[str, ToolOutputSummary] = field(default_factory=dict)
    picture_sizes: Mapping[tuple[str, str], ImageSize] = field(default_factory=dict)
    _calls: dict[str, ItemBlock] = field(default_factory=dict)

    def blocks(self, items: Iterable[Mapping[str, Any]]) -> list[ItemBlock]:
        """Render `items`. An output is attached to a call rendered earlier by the same renderer."""
        blocks = []
        for item in items:
            block = self._block(item)
            call = self._calls.get(block.call_id) if block.type in OUTPUT_TYPES else None
            if call is not None and call.pair is None:
                call.pair = block
                continue
            if block.call_id and block.type not in OUTPUT_TYPES:
                self._calls[block.call_id] = block
            blocks.append(block)
        return blocks

    def _block(self, item: Mapping[str, Any]) -> ItemBlock:
        kind = str(item.get("type") or "message")
        parts = self._message(item) if kind in ("message", "reasoning") else [*_fields(item, kind), *self._model_output(item)]
        output = self.tool_outputs.get(str(item.get("id")))
        raised = tool_fields.raised_in_code(item, output.text if output else "")
        return ItemBlock(item, parts, call_id_of(item), raised=raised)

    def _model_output(self, item: Mapping[str, Any]) -> Iterable[BlockPart]:
        """Render the output that only the model reads, unless the item shows an output."""
        output = self.tool_outputs.get(str(item.get("id")))
        if output is None or is_unfinished(item) or item.get("outputs") or item.get("results"):
            return
        first = len(picture_urls(item))
        if output.text:
            yield truncated_part(output.text, MAX_FIELD_CHARS, label=RESULT, note="Sent to the model")
        yield from (BlockPart(image=first + position) for position in range(output.pictures))

    def _message(self, item: Mapping[str, Any]) -> list[BlockPart]:
        content = item.get("content")
        parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else list(content or ())
        summary = [] if _copies(item.get("summary"), content) else list(item.get("summary") or ())
        uid = str(item.get("id"))
        shown = [
            self._part(part, position, uid) for position, part in enumerate([*summary, *parts]) if isinstance(part, Mapping)
        ]
        encrypted = item.get("encrypted_content")
        return shown or ([BlockPart(note=f"Encrypted reasoning, {len(str(encrypted))} characters")] if encrypted else [])

    def _part(self, part: Mapping[str, Any], position: int, uid: str) -> BlockPart:
        kind = str(part.get("type"))
        if kind == "input_image":
            url = image_source(part)
            return picture_part(position, url, self.picture_sizes.get((uid, url)))
        if kind == "input_file":
            name = part.get("filename") or part.get("file_id") or part.get("file_url") or ""
            file_id = part.get("file_id")
            address = file_address(file_id) if file_id and isinstance(file_id, str) else ""
            return BlockPart(note=visible(f"File: {str(name)[:MAX_FIELD_CHARS]}"), address=address)
        if kind not in TEXT_FIELDS:
            return truncated_part(json.dumps(part, ensure_ascii=False), MAX_FIELD_CHARS, note=kind)
        text = str(part.get(TEXT_FIELDS[kind]) or "")
        if kind in ("output_text", "summary_text") and len(text) <= min(self.markdown_budget, self.max_text_chars):
            self.markdown_budget -= len(text)
            annotations = part.get("annotations")
            return BlockPart(html=markdown(with_links(text, annotations) if annotations else fenced_json(text)))
        return truncated_part(text, self.max_text_chars, note="refusal" if kind == "refusal" else "")


def image_source(part: Mapping[str, Any]) -> str:
    """Return the URL or the file id of an `input_image`."""
    return str(part.get("image_url") or part.get("file_id") or "")


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


def _fields(item: Mapping[str, Any], kind: str) -> Iterable[BlockPart]:
    """Render the type-specific fields of any item except messages and reasoning."""
    if kind in OUTPUT_TYPES and isinstance(item.get("output"), list):
        for position, part in enumerate(item["output"]):
            if isinstance(part, Mapping) and part.get("type") in ("input_image", "computer_screenshot"):
                yield picture_part(position, part.get("image_url"))
            else:
                yield text_part(part.get("text", part) if isinstance(part, Mapping) else part)
        return
    if kind in TOOL_KINDS:
        yield from TOOL_KINDS[kind](item)
        return
    names: Sequence[str] = [
        key for key in ("arguments", "input", "code", "output", "action", "result") if item.get(key) is not None
    ]
    for key in names:
        yield text_part(item[key], FIELD_LABELS.get(key, key.capitalize()))
    if not names:
        skipped = ("id", "type", "status")
        yield text_part({key: value for key, value in item.items() if key not in skipped}, "Fields")
