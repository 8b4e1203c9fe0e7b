"""Outputs of server tools in prompts: text up to a length, and pictures for models that see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import orjson

from responses_app.images import decode, decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput
from responses_app.tools.outputs.truncation import truncate_output

PART_TYPES: Final = frozenset({"audio", "image", "resource", "resource_link", "text"})
# Limits of the pictures of all outputs in a prompt. The newest outputs come first. Further pictures stay notices in the text.
MAX_PICTURES: Final = 20
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_PIXELS: Final = 50_000_000
# URLs of the pictures that the prompt shows, by position among the pictures of an item. The prompt finds the bytes by item and URL.
ShownPictures: TypeAlias = Mapping[int, str]
Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """Picture of an output: data URL in base64, and a notice for models that do not get it."""

    url: str
    notice: str


Segment: TypeAlias = str | Picture


@dataclass(slots=True)
class PromptPictures:
    """Pictures of a prompt: the shown pictures by item id, and the bytes by item id and URL."""

    shown: dict[str, ShownPictures] = field(default_factory=dict)
    images: dict[tuple[str, str], bytes] = field(default_factory=dict)


def pictures_of(item: Json) -> list[Picture]:
    """Return the pictures in the output of a server tool, not decoded and not checked."""
    return [segment for segment in _segments(item) or () if isinstance(segment, Picture)]


def picture_of(part: Json) -> Picture | None:
    """Return the picture of a content part of an MCP result: an image, or a resource that is an image; None for other parts."""
    resource: Json = part["resource"] if isinstance(part.get("resource"), Mapping) else {}
    media_type, data = part.get("mimeType") or resource.get("mimeType"), part.get("data") or resource.get("blob")
    if part.get("type") not in ("image", "resource") or not str(media_type).startswith("image/") or not isinstance(data, str):
        return None
    return Picture(f"data:{media_type};base64,{data}", _notice(part["type"], (media_type, resource.get("uri"))))


async def choose_pictures(project: str, items: Sequence[Mapping[str, Any]]) -> PromptPictures:
    """Return the pictures of outputs in `items` that decode and are within the limits. Raises DecoderBusy."""
    chosen, budget = PromptPictures(), _PictureBudget()
    for item in reversed(items):
        urls: dict[int, str] = {}
        for position, picture in enumerate(pictures_of(item)):
            data = await budget.take(project, picture)
            if data is not None:
                # The key of the bytes: the data URL itself would be as long as the picture.
                urls[position] = f"tool-output:{position}"
                chosen.images[item["id"], urls[position]] = data
        if urls:
            chosen.shown[item["id"]] = urls
    return chosen


class _PictureBudget:
    """Number, bytes and pixels of pictures that may still be taken."""

    def __init__(self) -> None:
        self._pictures, self._bytes, self._pixels = MAX_PICTURES, MAX_BYTES, MAX_PIXELS

    async def take(self, project: str, picture: Picture) -> bytes | None:
        """Return the bytes of `picture`; None if it does not fit or is no valid image. Raises DecoderBusy."""
        # Four characters of base64 are three bytes.
        if not self._pictures or len(picture.url) * 3 // 4 > self._bytes:
            return None
        try:
            data = decode.decode_data_url(picture.url)
            size = await decode_pool.check(project, data)
        except InvalidImage:
            return None
        if size.area > self._pixels:
            return None
        self._pictures, self._bytes, self._pixels = self._pictures - 1, self._bytes - len(data), self._pixels - size.area
        return data


def limit_tool_output(item: Json, max_bytes: int, shown: ShownPictures | None = None) -> Json:
    """Return `item` with the output of a server tool as the model reads it. The stored item has the whole output.

    Pictures that are not `shown`, and other parts that are no text, become notices. Behind `max_bytes` bytes the text is cut, with
    a notice. Without a text for the model the text of the item stays.
    """
    segments = _segments(item)
    if segments is None:
        return item
    shown, texts, position = shown or {}, list[str](), 0
    for segment in segments:
        if isinstance(segment, str):
            texts.append(segment)
            continue
        texts += [] if position in shown else [segment.notice]
        position += 1
    text, model_output = truncate_output("\n".join(texts), max_bytes), item.get(MODEL_OUTPUT)
    if model_output is None and item.get("output") == text:
        return item
    has_text = model_output is None or model_output.text is not None
    return {**item, MODEL_OUTPUT: ModelOutput(text if has_text else None, tuple(shown[at] for at in sorted(shown)))}


def _segments(item: Json) -> list[Segment] | None:
    """Return the texts and pictures of an output; None for items that show the whole output themselves."""
    output: ModelOutput | None = item.get(MODEL_OUTPUT)
    if output is not None:
        texts = [] if output.text is None else [output.text]
        return [*texts, *(Picture(url, _notice("image", [url[5:].partition(";")[0]])) for url in output.images)]
    if item.get("type") != "mcp_call":
        return None
    if isinstance(item.get("output"), str):
        return _segments_of_text(item["output"])
    return _segments_of_error(item.get("error"))


def _segments_of_text(output: str) -> list[Segment]:
    """Return the segments of an output that is a list of content parts in JSON; any other output as a text."""
    if not output.startswith('[{"'):
        return [output]
    try:
        parts = orjson.loads(output)
    except orjson.JSONDecodeError:
        return [output]
    if not all(map(_is_part, parts)) or all(part["type"] == "text" for part in parts):
        return [output]
    return [_segment(part) for part in parts]


def _segments_of_error(error: object) -> list[Segment] | None:
    """Return the segments of a tool's error with parts that are no text; None for any other error."""
    parts = error.get("content") if isinstance(error, Mapping) else None
    if not isinstance(parts, list) or not all(map(_is_part, parts)) or all(part["type"] == "text" for part in parts):
        return None
    return ["The tool failed:", *map(_segment, parts)]


def _is_part(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") in PART_TYPES


def _segment(part: Json) -> Segment:
    if part["type"] == "text":
        return str(part.get("text", ""))
    if part["type"] == "resource_link":
        return _link(part)
    resource = part.get("resource") or {}
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    names = (part.get("mimeType") or resource.get("mimeType"), part.get("uri") or resource.get("uri"))
    return picture_of(part) or _notice(part["type"], names)


def _link(part: Json) -> str:
    """Return the name, address, type and description of a linked resource. The model may use the address with another tool."""
    details = (part.get("title") or part.get("name"), part.get("uri"), part.get("mimeType"), part.get("description"))
    return f"[Link to a resource: {', '.join(str(detail) for detail in details if detail)}]"


def _notice(kind: str, names: Sequence[object]) -> str:
    details = ", ".join(str(name) for name in names if name)
    return f"[The result has a part of type {kind}{f' ({details})' if details else ''}, which is shown to the user alone.]"
