"""Serialisation of stored items for lists, with the fields that `include` names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import orjson

from responses_app.runs.prepare import encrypted_content

IMAGE_URLS: Final = "message.input_image.image_url"
SCREENS: Final = "computer_call_output.output.image_url"


def serialize(project: str, body: str, include: Collection[str]) -> bytes:
    """Serialise an item of a response."""
    return redact_images(encrypted_content.redact(project, body, with_ciphertext=encrypted_content.INCLUDE in include), include)


def redact_images(body: str, include: Collection[str]) -> bytes:
    """Serialise an item. Image URLs of messages and screenshots are null unless `include` names the URLs."""
    if IMAGE_URLS not in include and '"input_image"' in body:
        item = orjson.loads(body)
        if item["type"] == "message":
            return orjson.dumps({**item, "content": [_without_images(part) for part in item["content"]]})
    if SCREENS not in include and '"computer_screenshot"' in body:
        item = orjson.loads(body)
        if item["type"] == "computer_call_output":
            return orjson.dumps({**item, "output": {**item["output"], "image_url": None}})
    return body.encode()


def _without_images(part: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**part, "image_url": None} if part["type"] == "input_image" else part
