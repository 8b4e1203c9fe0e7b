"""The text and the images of items and content parts of the API."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias

from responses_app.dialects.base import UnsupportedInput

Item: TypeAlias = Mapping[str, Any]

IMAGE = "input_image"
_TEXT_KEYS = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}


def kind(item: Item) -> str:
    """The type of an item; one without a type but with a role is a message (§1.2)."""
    return str(item.get("type") or "message")


def in_call_order(items: Sequence[Item]) -> list[tuple[int, Item]]:
    """Items with their indexes. Outputs that stand together come in the order of their calls, for few models see call ids."""
    rank = {str(item["call_id"]): index for index, item in enumerate(items) if kind(item) == "function_call"}
    found: list[tuple[int, Item]] = []
    for outputs, group in groupby(enumerate(items), lambda entry: kind(entry[1]) == "function_call_output"):
        by_call = sorted(group, key=lambda entry: rank.get(str(entry[1].get("call_id")), len(items)) if outputs else 0)
        found.extend(by_call)
    return found


def text_of(content: object, path: str, *, joint: str = "\n") -> str:
    """The text of a string, a list of parts or null; parts are joined with `joint`. Raises BadTurn for what is not text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        raise UnsupportedInput("Invalid content: expected a string or a list of parts.", path, "invalid_type")
    return joint.join(part_text(part, f"{path}[{index}]") for index, part in enumerate(content))


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image of a turn: the id of its item, where it stands there, its URL, and how closely the client wants it looked at."""

    item: str
    path: str
    url: str
    detail: str = "auto"


def images(items: Sequence[Item]) -> Iterator[ImageReference]:
    """All images of a turn, in the order in which a model is told them."""
    for index, item in in_call_order(items):
        key = "output" if "output" in item else "content"
        content = item.get(key)
        if isinstance(content, Mapping):
            # The screen that a computer shows.
            yield ImageReference(str(item.get("id")), f"input[{index}].{key}", str(content.get("image_url") or ""))
        if not isinstance(content, list):
            continue
        for at, part in enumerate(content):
            if isinstance(part, Mapping) and part.get("type") == IMAGE:
                url, detail = str(part.get("image_url") or ""), str(part.get("detail") or "auto")
                yield ImageReference(str(item.get("id")), f"input[{index}].{key}[{at}]", url, detail)


def has_images(content: object) -> bool:
    """Whether there is an image among these parts."""
    return isinstance(content, list) and any(isinstance(part, Mapping) and part.get("type") == IMAGE for part in content)


def no_vision(path: str) -> UnsupportedInput:
    """The error for an image that is put to a model that does not see."""
    message = f"Unsupported content part '{IMAGE}' at '{path}': this model takes text only."
    return UnsupportedInput(message, path, "unsupported_value")


def part_text(part: Item, path: str) -> str:
    """The text of one part. Raises BadTurn for what is not text."""
    key = _TEXT_KEYS.get(str(part.get("type")))
    if part.get("type") == IMAGE:
        raise no_vision(path)
    if key is None:
        raise UnsupportedInput(f"Content of type {part.get('type')!r} is not supported with this model.", path, "invalid_value")
    return str(part.get(key) or "")


def message_text(item: Item, path: str) -> str:
    """All text of a message. What an assistant said in several parts is one text; what others sent is one line per part."""
    joint = "" if item.get("role") == "assistant" else "\n"
    return text_of(item.get("content"), f"{path}.content", joint=joint)


def reasoning_text(item: Item) -> str:
    """The raw reasoning of an item, or else its summary; empty if it holds neither in the clear (§3.11)."""
    for key in ("content", "summary"):
        parts = [str(part.get("text") or "") for part in item.get(key) or ()]
        if any(parts):
            return "\n".join(part for part in parts if part)
    return ""


def called_names(items: Sequence[Item]) -> dict[str, str]:
    """The function name of every call by its call id."""
    return {str(item["call_id"]): str(item["name"]) for item in items if item.get("type") == "function_call"}


def unsupported(item: Item, path: str) -> UnsupportedInput:
    """The error for an item that cannot be put to the model."""
    return UnsupportedInput(f"Items of type {kind(item)!r} are not supported with this model.", f"{path}.type", "invalid_value")


def output_text(item: Item, path: str) -> str:
    """The text of a tool's output."""
    return text_of(item.get("output"), f"{path}.output")


def tool_name(item: Item, names: Mapping[str, str]) -> str:
    """The name of the function whose output this is. Raises BadTurn if no call has its id."""
    call_id = str(item.get("call_id"))
    name = names.get(call_id) or item.get("name")
    if not name:
        raise UnsupportedInput(f"No tool call found for function call output with call_id {call_id}.", "input")
    return str(name)
