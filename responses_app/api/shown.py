"""Stored items as lists show them: with what `include` asks for, and without what it would have to (responses-api.md §3.12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from responses_app.runs import sealed
from responses_app.store.inputs import Page

IMAGE_URLS: Final = "message.input_image.image_url"
SCREENS: Final = "computer_call_output.output.image_url"


def bodies(project: str, page: Page, include: Collection[str]) -> list[bytes]:
    """The items of a page of a response's input."""
    return [pictured(sealed.listed(project, body, wanted=sealed.INCLUDE in include), include) for _, body in page.rows]


def pictured(body: str, include: Collection[str]) -> bytes:
    """An item; images of messages and of screens keep their URLs only if they are asked for. What other tools returned stays as it is."""
    if IMAGE_URLS not in include and '"input_image"' in body:
        item = orjson.loads(body)
        if item["type"] == "message":
            return orjson.dumps({**item, "content": [_bare(part) for part in item["content"]]})
    if SCREENS not in include and '"computer_screenshot"' in body:
        item = orjson.loads(body)
        if item["type"] == "computer_call_output":
            return orjson.dumps({**item, "output": {**item["output"], "image_url": None}})
    return body.encode()


def _bare(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**part, "image_url": None} if part["type"] == "input_image" else part
