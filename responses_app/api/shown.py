"""Stored items as lists show them: with what `include` asks for, and without what it would have to (responses-api.md §3.12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from responses_app.runs import sealed
from responses_app.store.inputs import Page

IMAGE_URLS: Final = "message.input_image.image_url"


def bodies(project: str, page: Page, include: Collection[str]) -> list[bytes]:
    """The items of a page of a response's input."""
    return [pictured(sealed.listed(project, body, wanted=sealed.INCLUDE in include), include) for _, body in page.rows]


def pictured(body: str, include: Collection[str]) -> bytes:
    """An item; the images of a message keep their URLs only if they are asked for. What a tool has returned stays as it came."""
    if IMAGE_URLS in include or '"input_image"' not in body:
        return body.encode()
    item = orjson.loads(body)
    if item["type"] != "message":
        return body.encode()
    return orjson.dumps({**item, "content": [_bare(part) for part in item["content"]]})


def _bare(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**part, "image_url": None} if part["type"] == "input_image" else part
