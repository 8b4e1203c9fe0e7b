"""Parts of the HTML fragment of an item: texts, rendered Markdown, pictures and lists of pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.safestring import SafeString

from responses_app.images.decode import ImageSize, header_size, is_data_url
from responses_app.web.render.sanitize import readable, truncate, visible

# Shown characters of a field of any item except a message.
MAX_FIELD_CHARS: Final = 4_000
# Longer results are folded.
MAX_OPEN_CHARS: Final = 600
MAX_OPEN_LINES: Final = 12
# The height of shown pictures in CSS pixels, as in items.css.
MAX_PICTURE_HEIGHT: Final = 288
ARGUMENTS: Final = "Arguments"
RESULT: Final = "Result"


@dataclass(frozen=True, slots=True)
class PageLink:
    """Page that a web search returned. `url` is empty unless it is an address of the web."""

    url: str
    title: str
    snippet: str


@dataclass(frozen=True, slots=True)
class BlockPart:
    """Part of a fragment: plain text, rendered Markdown, pages, or the position of an image in the item.

    `whole` is the whole text where `text` is its beginning. `size` is the size of the shown image in CSS pixels, None if unknown.
    `label` names the box of a text, `note` stands before the part and leads to `address`.
    """

    text: str = ""
    whole: str = ""
    html: SafeString | None = None
    left_out: int = 0
    image: int | None = None
    size: ImageSize | None = None
    note: str = ""
    address: str = ""
    label: str = ""
    heading: str = ""
    pages: Sequence[PageLink] = ()
    is_error: bool = False

    @property
    def is_folded(self) -> bool:
        """Return whether the text is a long result, which opens on a click."""
        return self.label == RESULT and (len(self.text) > MAX_OPEN_CHARS or self.text.count("\n") >= MAX_OPEN_LINES)

    @property
    def language(self) -> str:
        """Return the language of a text in a box for its colours; empty for text without a language."""
        if self.label == "Code":
            return "python"
        return "json" if self.label in (ARGUMENTS, RESULT) and self.text[:1] in ("{", "[") else ""

    @property
    def all_chars(self) -> str:
        """Return the number of characters of the whole text, as in 5,000."""
        return f"{len(self.text) + self.left_out:,}"


def picture_part(position: int, url: object, size: ImageSize | None = None) -> BlockPart:
    """Return the part of the image at `position`, with its size, so that the page reserves the exact space.

    `size` is the size of an image that is no data URL, None if unknown.
    """
    if isinstance(url, str) and is_data_url(url):
        size = header_size(url)
    if size is None or not size.area:
        return BlockPart(image=position)
    scale = min(1, MAX_PICTURE_HEIGHT / size.height)
    return BlockPart(image=position, size=ImageSize(max(1, round(size.width * scale)), max(1, round(size.height * scale))))


def text_part(value: Any, label: str = RESULT, **fields: Any) -> BlockPart:
    """Return the part of a text or of a JSON value, the latter indented; long values are truncated."""
    if isinstance(value, str) and len(value) <= MAX_FIELD_CHARS:
        return BlockPart(text=readable(value), label=label, **fields)
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return truncated_part(text, MAX_FIELD_CHARS, label=label, **fields)


def truncated_part(text: str, limit: int, **fields: Any) -> BlockPart:
    """Return the part of a text of which at most `limit` characters are shown."""
    shown, left_out = truncate(text, limit)
    return BlockPart(text=shown, left_out=left_out, whole=text if left_out else "", **fields)


def fenced_json(text: str) -> str:
    """Return a JSON object or array as a code block of Markdown, indented unless that changes more than whitespace.

    Any other text is returned as it is. No line of valid JSON closes the block, because its strings have no line breaks.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        indented = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text
    shown = indented if "".join(indented.split()) == "".join(text.split()) else text
    return f"```json\n{shown}\n```"


def error_part(text: str) -> BlockPart:
    """Return the part of an error message."""
    return replace(text_part(text, ""), is_error=True)


def page_part(pages: Sequence[Mapping[str, Any]]) -> BlockPart:
    """Return the list of the pages of a web search."""
    links = [
        PageLink(
            str(page["url"]) if str(page["url"]).startswith(("http://", "https://")) else "",
            visible(str(page.get("title") or page["url"])[:MAX_OPEN_CHARS]),
            visible(str(page.get("snippet") or "")[:MAX_OPEN_CHARS]),
        )
        for page in pages
    ]
    return BlockPart(pages=links)
