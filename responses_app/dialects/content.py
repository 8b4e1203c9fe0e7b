"""Text and images of items and content parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from responses_app.dialects.base import UnsupportedInput

Item: TypeAlias = Mapping[str, Any]

IMAGE = "input_image"
# Part of each error for images that a model without vision does not take.
TEXT_ONLY = "this model takes text only"
_TEXT_KEYS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def item_type(item: Item) -> str:
    """Return the type of an item; items with a role but no type are messages."""
    return str(item.get("type") or "message")


def in_call_order(items: Sequence[Item]) -> list[tuple[int, Item]]:
    """Return the items with indexes, adjacent outputs in the order of the calls: few chat formats have call ids."""
    rank = {str(item["call_id"]): index for index, item in enumerate(items) if item_type(item) == "function_call"}
    if not rank:
        return list(enumerate(items))
    ordered: list[tuple[int, Item]] = []
    for outputs, group in groupby(enumerate(items), lambda entry: item_type(entry[1]) == "function_call_output"):
        by_call = sorted(group, key=lambda entry: rank.get(str(entry[1].get("call_id")), len(items)) if outputs else 0)
        ordered.extend(by_call)
    return ordered


def text_of(content: object, path: str, *, joint: str = "\n") -> str:
    """Return the text of a string, a list of parts or null, joined with `joint`. Raises UnsupportedInput for parts without text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise UnsupportedInput("Invalid content: expected a string or a list of parts.", path, "invalid_type")
    return joint.join(part_text(part, f"{path}[{index}]") for index, part in enumerate(content))


@dataclass(frozen=True, slots=True)
class ImageReference:
    """Image of a turn: id of the item, JSON path, URL or id of an uploaded file, and the requested detail."""

    item: str
    path: str
    url: str
    detail: str = "auto"


def iter_images(items: Sequence[Item]) -> Iterator[ImageReference]:
    """Yield all images of a turn, in prompt order."""
    for index, item in in_call_order(items):
        key = "output" if "output" in item else "content"
        content = item.get(key)
        if isinstance(content, Mapping):
            # The screenshot of a computer call output.
            yield ImageReference(str(item.get("id")), f"input[{index}].{key}", str(content.get("image_url") or ""))
        if not isinstance(content, list):
            continue
        for at, part in enumerate(content):
            if isinstance(part, Mapping) and part.get("type") == IMAGE:
                url, detail = str(part.get("image_url") or part.get("file_id") or ""), str(part.get("detail") or "auto")
                yield ImageReference(str(item.get("id")), f"input[{index}].{key}[{at}]", url, detail)


def has_images(content: object) -> bool:
    """Return True if the content parts include an image."""
    return isinstance(content, list) and any(isinstance(part, Mapping) and part.get("type") == IMAGE for part in content)


def no_vision(path: str) -> UnsupportedInput:
    """Create the error for an image in the input of a text-only model."""
    message = f"Unsupported content part '{IMAGE}' at '{path}': {TEXT_ONLY}."
    return UnsupportedInput(message, path, "unsupported_value")


def part_text(part: Item, path: str) -> str:
    """Return the text of a part. Raises UnsupportedInput for parts without text."""
    key = _TEXT_KEYS.get(str(part.get("type")))
    if part.get("type") == IMAGE:
        raise no_vision(path)
    if key is None:
        raise UnsupportedInput(f"Content of type {part.get('type')!r} is not supported with this model.", path, "invalid_value")
    return str(part.get(key) or "")


def message_text(item: Item, path: str) -> str:
    """Return the text of a message. Parts of assistant messages are concatenated, parts of other roles joined by line breaks."""
    joint = "" if item.get("role") == "assistant" else "\n"
    return text_of(item.get("content"), f"{path}.content", joint=joint)


def reasoning_text(item: Item) -> str:
    """Return the raw reasoning of an item, or else the summary; empty if the item has only encrypted content."""
    for key in ("content", "summary"):
        parts = [str(part.get("text") or "") for part in item.get(key) or ()]
        if any(parts):
            return "\n".join(part for part in parts if part)
    return ""


def called_names(items: Sequence[Item]) -> dict[str, str]:
    """Map each call id to the function name."""
    return {str(item["call_id"]): str(item["name"]) for item in items if item.get("type") == "function_call"}


def unsupported(item: Item, path: str) -> UnsupportedInput:
    """Create the error for an item type without support in the dialect."""
    return UnsupportedInput(
        f"Items of type {item_type(item)!r} are not supported with this model.", f"{path}.type", "invalid_value"
    )


def output_text(item: Item, path: str) -> str:
    """Return the text of a tool output."""
    return text_of(item.get("output"), f"{path}.output")


def tool_name(item: Item, names: Mapping[str, str]) -> str:
    """Return the function name of an output. Raises UnsupportedInput if no call has the output's call id."""
    call_id = str(item.get("call_id"))
    name = names.get(call_id) or item.get("name")
    if not name:
        raise UnsupportedInput(f"No tool call found for function call output with call_id {call_id}.", "input")
    return str(name)
