"""Pictures in results of server tools, numbered as on the pages."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from responses_app.tools.outputs.output_limit import picture_of

Item: TypeAlias = Mapping[str, Any]
# First bytes of the formats that the pages show.
MEDIA_TYPES: Final = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif", b"RIFF": "image/webp"}


def media_type_of(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes; None for data that no page shows."""
    return next((name for start, name in MEDIA_TYPES.items() if data.startswith(start)), None)


def content_parts(output: object) -> list[dict[str, Any]] | None:
    """Return the parts of an output that is a JSON list of content parts; None for any other output."""
    try:
        parts: Any = json.loads(output) if isinstance(output, str) else output
    except (ValueError, RecursionError):
        return None
    is_list = isinstance(parts, list) and parts and all(isinstance(part, dict) and "type" in part for part in parts)
    return parts if is_list else None


def part_url(part: Item) -> str | None:
    """Return the data URL of a content part of an MCP result; None unless the part is an image that a page can show."""
    picture = picture_of(part)
    return None if picture is None or not _is_shown(picture.url) else picture.url


def picture_urls(item: Item) -> list[str]:
    """Return the data URLs of all pictures in the result of a server tool, in order."""
    return list(_urls(item))


def _urls(item: Item) -> Iterator[str]:
    if item.get("type") == "code_interpreter_call":
        yield from (url for output in item.get("outputs") or () if (url := code_image(output)) is not None)
    if item.get("type") == "mcp_call":
        error = item.get("error")
        contents = (item.get("output"), error.get("content") if isinstance(error, Mapping) else None)
        for content in contents:
            yield from (url for part in content_parts(content) or () if (url := part_url(part)) is not None)


def code_image(output: object) -> str | None:
    """Return the data URL of an output of code; None if the output is no image with such a URL."""
    if not isinstance(output, Mapping) or output.get("type") != "image":
        return None
    url = output.get("url")
    return url if isinstance(url, str) and _is_shown(url) else None


def _is_shown(url: str) -> bool:
    """Return whether the first bytes of a data URL in base64 are those of an image."""
    head, _, data = url.partition(",")
    try:
        return head.startswith("data:") and media_type_of(b64decode(data[:16])) is not None
    except ValueError:
        return False
