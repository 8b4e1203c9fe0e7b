"""Shown values of items of MCP servers: tools, arguments, results, errors and decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeAlias

from responses_app.web.render.result_pictures import ResultPicture, content_parts, part_url

Item: TypeAlias = Mapping[str, Any]


def _listing(item: Item) -> Iterator[Any]:
    if item.get("error"):
        yield f"Error: {item['error']}"
    tools = [tool for tool in item.get("tools") or () if isinstance(tool, Mapping)]
    if tools:
        yield "\n".join(_tool_line(tool) for tool in tools)


def _tool_line(tool: Item) -> str:
    description = tool.get("description")
    return f"{tool.get('name')}: {description}" if description else str(tool.get("name"))


def _call(item: Item) -> Iterator[Any]:
    positions = count()
    yield item.get("arguments") or "{}"
    if item.get("output") is not None:
        parts = content_parts(item["output"])
        yield from [item["output"]] if parts is None else (_part(part, positions) for part in parts)
    if item.get("error") is not None:
        yield from _error(item["error"], positions)


def _part(part: Item, positions: Iterator[int]) -> Any:
    """Return the text of a content part, the position of a picture, or a note for a part that the page cannot show."""
    if part_url(part) is not None:
        return ResultPicture(next(positions))
    if part["type"] in ("image", "audio"):
        return f"[{part['type']}, {part.get('mimeType')}, {len(str(part.get('data') or ''))} characters of base64]"
    return part.get("text") or part


def _error(error: Any, positions: Iterator[int]) -> Iterator[Any]:
    if not isinstance(error, Mapping):
        yield f"Error: {error}"
        return
    parts = [_part(part, positions) for part in content_parts(error.get("content")) or ()]
    texts = [part if isinstance(part, str) else json.dumps(part, ensure_ascii=False) for part in parts if not _is_picture(part)]
    code = f" {error['code']}" if "code" in error else ""
    yield f"Error ({error.get('type')}{code}): " + ("\n".join(texts) or error.get("message") or "")
    yield from filter(_is_picture, parts)


def _is_picture(value: object) -> bool:
    return isinstance(value, ResultPicture)


def _request(item: Item) -> Iterator[Any]:
    yield item.get("arguments") or "{}"


def _response(item: Item) -> Iterator[Any]:
    reason = item.get("reason")
    yield ("Approved" if item.get("approve") else "Denied") + (f": {reason}" if reason else "")


KINDS: Final[Mapping[str, Callable[[Item], Iterator[Any]]]] = {
    "mcp_list_tools": _listing,
    "mcp_call": _call,
    "mcp_approval_request": _request,
    "mcp_approval_response": _response,
}
