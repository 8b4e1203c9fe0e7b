"""Markdown of a chat thread: messages, folded reasoning, calls with arguments and results, and attachments by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

import orjson

from responses_app.images.decode import is_data_url
from responses_app.models import Response, Status
from responses_app.web.render.block_parts import ARGUMENTS, RESULT, BlockPart
from responses_app.web.render.item_blocks import OUTPUT_TYPES, TEXT_FIELDS, ItemBlock, call_id_of, image_source
from responses_app.web.response.items import item_renderer
from responses_app.web.response.outcome import outcome

FENCE: Final = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)
FOLD_END: Final = re.compile("</details", re.IGNORECASE)
CITED: Final = ("title", "filename")


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """Response of a thread with its input items and its snapshot, both as JSON."""

    row: Response
    input: Sequence[str]
    snapshot: bytes

    def call_ids(self) -> set[str]:
        """Return the ids of the calls in the output."""
        output = orjson.loads(self.snapshot)["output"]
        return {call_id_of(item) for item in output if item["type"] not in OUTPUT_TYPES} - {""}

    def answers(self, call_ids: Set[str]) -> list[dict[str, Any]]:
        """Return the input items that answer the calls `call_ids`."""
        items = map(orjson.loads, self.input)
        return [item for item in items if item.get("type") in OUTPUT_TYPES and call_id_of(item) in call_ids]


def turn_markdown(turn: StoredTurn, previous: StoredTurn | None = None, following: StoredTurn | None = None) -> str:
    """Return the Markdown of a response and its input. Results of calls stand beside the calls of the response before."""
    row, snapshot = turn.row, orjson.loads(turn.snapshot)
    shown_before = turn.answers(previous.call_ids()) if previous is not None else []
    inputs = [item for item in map(orjson.loads, turn.input) if item not in shown_before]
    output = [*snapshot["output"], *(following.answers(turn.call_ids()) if following is not None else ())]
    renderer = item_renderer(row, [*inputs, *output])
    # Messages are not rendered: their Markdown is taken from the items.
    renderer.markdown_budget = 0
    asked = renderer.blocks(inputs)
    paragraphs = list(_of_blocks(asked, "", f" · {row.created_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"))
    paragraphs += _of_blocks(renderer.blocks(output), row.model)
    ending = outcome(row, snapshot) if row.ended_at is not None else None
    if ending is not None:
        paragraphs.append(f"*{ending.title}: {ending.message}*")
    elif row.status != Status.COMPLETED:
        paragraphs.append("*This response has not ended.*")
    return "".join(f"{paragraph}\n\n" for paragraph in paragraphs)


def item_markdown(items: Sequence[dict[str, Any]], row: Response) -> str:
    """Return the Markdown of items before the first turn of a thread, of which `row` is the response."""
    return "".join(f"{paragraph}\n\n" for paragraph in _of_blocks(item_renderer(row, items).blocks(items), ""))


def heading(text: str, level: int = 2) -> str:
    """Return a heading of one line."""
    return f"{'#' * level} {' '.join(text.split())}"


def _of_blocks(blocks: Sequence[ItemBlock], model: str, time: str = "") -> Iterator[str]:
    """Yield the paragraphs of items, with a heading where the speaker changes. `model` is the speaker of output items."""
    speaker = ""
    for block in blocks:
        if speaker != (speaker := model or block.speaker):
            yield heading(f"{speaker}{time}")
        match block.shape:
            case "message":
                yield from _of_message(block.item)
            case "reasoning":
                if text := "\n\n".join(_of_message(block.item)):
                    yield f"<details><summary>Reasoning</summary>\n\n{FOLD_END.sub('&lt;/details', text)}\n\n</details>"
            case _:
                yield from _of_call(block)


def _of_message(item: Mapping[str, Any]) -> Iterator[str]:
    content = item.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content or item.get("summary") or ()
    for part in parts:
        kind = str(part.get("type"))
        if kind == "input_image":
            source = image_source(part)
            yield f"*Image{'' if is_data_url(source) else f': {source}'}*"
        elif kind == "input_file":
            yield f"*File: {part.get('filename') or part.get('file_id') or part.get('file_url') or 'without a name'}*"
        elif text := str(part.get(TEXT_FIELDS.get(kind, "")) or ""):
            yield text
            yield from _citations(part.get("annotations"), text)


def _citations(annotations: object, text: str) -> Iterator[str]:
    """Yield a line with the cited files and pages whose address is not in the text."""
    cited = [one for one in annotations if isinstance(one, Mapping)] if isinstance(annotations, list) else []
    lines = dict.fromkeys(
        " ".join(filter(None, (next((str(one[key]) for key in CITED if one.get(key)), ""), str(one.get("url") or ""))))
        for one in cited
        if not one.get("url") or str(one["url"]) not in text
    )
    if names := "; ".join(filter(None, lines)):
        yield f"*Sources: {names}*"


def _of_call(block: ItemBlock) -> Iterator[str]:
    if block.type in OUTPUT_TYPES:
        yield f"**{block.title}**"
    else:
        yield f"**Call: {block.title}**{f' ({block.state})' if block.state else ''}"
    for part in (*block.parts, *(block.pair.parts if block.pair else ())):
        yield from _of_part(part)


def _of_part(part: BlockPart) -> Iterator[str]:
    if part.image is not None:
        yield "*Image*"
    if part.pages:
        # A page without a title has its address as the title.
        yield "\n".join("- " + " ".join(dict.fromkeys(filter(None, (page.title, page.url)))) for page in part.pages)
    if part.note or part.heading:
        yield f"*{part.note or part.heading}*"
    text = part.whole or part.text
    if text:
        yield f"{'Error' if part.is_error else part.label or RESULT}:"
        yield fenced(text, part.language if part.label == ARGUMENTS or part.language == "python" else "")


def fenced(text: str, language: str = "") -> str:
    """Return a code block whose fence no line of the text closes."""
    fence = "`" * max([3, *(len(match) + 1 for match in FENCE.findall(text))])
    return f"{fence}{language}\n{text}\n{fence}"
