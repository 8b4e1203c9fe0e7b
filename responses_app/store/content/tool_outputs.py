"""Outputs of server tools for the model: text and pictures that the items do not show."""

from __future__ import annotations

import binascii
import logging
import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from responses_app.models import Response, ToolOutput
from responses_app.protocol.items.registry import FAMILIES
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput, ToolResult

Items: TypeAlias = Sequence[Mapping[str, Any]]

logger = logging.getLogger("responses.tool_outputs")

_DATA_URL = re.compile(r"data:(?P<type>[^;,]{1,100});base64,")
# Types of the items that can have an output in the table.
ITEM_TYPES: Final = frozenset(
    family.type for family in FAMILIES.values() if any(issubclass(result, ToolResult) for result in family.results)
)


async def load(project: str, items: Iterable[Mapping[str, Any]]) -> Mapping[str, ModelOutput]:
    """Load the outputs of all calls of server tools among `items`, by item id. No query without such items.

    Responses of `store: false` are left out, as in `history.find`.
    """
    uids = [item["id"] for item in items if item["type"] in ITEM_TYPES]
    if not uids:
        return {}
    rows = ToolOutput.objects.filter(item_uid__in=uids, response__project=project, response__stored=True).order_by("-pk")
    return {row.item_uid: _model_output(row) async for row in rows}


async def with_outputs(project: str, items: Items, known: Mapping[str, ModelOutput] | None = None) -> Items:
    """Return the items with the stored outputs of their calls. `known` are outputs of the context that are in memory."""
    known = known or {}
    outputs = {**await load(project, [item for item in items if item["id"] not in known]), **known}
    if not outputs:
        return items
    return [{**item, MODEL_OUTPUT: outputs[item["id"]]} if item["id"] in outputs else item for item in items]


def attached(items: Items) -> Mapping[str, ModelOutput]:
    """Return the outputs in `items`, by item id."""
    return {item["id"]: item[MODEL_OUTPUT] for item in items if MODEL_OUTPUT in item}


def size(outputs: Mapping[str, ModelOutput]) -> int:
    """Return the number of characters of all outputs."""
    return sum(len(output.text or "") + sum(map(len, output.images)) for output in outputs.values())


@dataclass(frozen=True, slots=True)
class ToolOutputSummary:
    """Output of an item without the bytes of the pictures: text, and number of pictures."""

    text: str
    pictures: int


def summaries(project: str, items: Items) -> Mapping[str, ToolOutputSummary]:
    """Return the stored outputs of all calls of server tools among `items`, by item id."""
    uids = [item["id"] for item in items if item.get("type") in ITEM_TYPES]
    rows = ToolOutput.objects.filter(item_uid__in=uids, response__project=project) if uids else ToolOutput.objects.none()
    values = rows.order_by("-pk").values_list("item_uid", "text", "media_types")
    return {uid: ToolOutputSummary(_decoded(text) or "", len(media_types)) for uid, text, media_types in values}


def picture(project: str, uid: str, position: int) -> bytes | None:
    """Return the picture at `position` of the stored output of an item; None if there is none."""
    rows = ToolOutput.objects.filter(item_uid=uid, response__project=project).order_by("pk")
    images = rows.values_list("images", flat=True).first() or []
    return bytes(images[position]) if position < len(images) else None


def insert(response: Response, outputs: Mapping[str, ModelOutput]) -> None:
    """Insert the outputs of items of `response`, by item id. A picture without a valid data URL is left out, with a warning."""
    ToolOutput.objects.bulk_create([_row(response, uid, output) for uid, output in outputs.items()])


def _row(response: Response, uid: str, output: ModelOutput) -> ToolOutput:
    pictures = [picture for picture in map(split_data_url, output.images) if picture is not None]
    if len(pictures) < len(output.images):
        logger.warning("%s: %d pictures of the result are no data URLs", uid, len(output.images) - len(pictures))
    return ToolOutput(
        response=response,
        item_uid=uid,
        text=None if output.text is None else output.text.encode("utf-8", "surrogatepass"),
        images=[data for _, data in pictures],
        media_types=[media_type for media_type, _ in pictures],
    )


def split_data_url(url: str) -> tuple[str, bytes] | None:
    """Return the media type and the bytes of a data URL in base64; None for any other text."""
    head = _DATA_URL.match(url)
    if head is None:
        return None
    try:
        return head["type"], b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        return None


def _model_output(row: ToolOutput) -> ModelOutput:
    pictures: Sequence[str] = [
        f"data:{media_type};base64,{b64encode(data).decode()}"
        for media_type, data in zip(row.media_types, row.images, strict=True)
    ]
    return ModelOutput(_decoded(row.text), tuple(pictures))


def _decoded(text: bytes | memoryview | None) -> str | None:
    return None if text is None else bytes(text).decode("utf-8", "surrogatepass")
