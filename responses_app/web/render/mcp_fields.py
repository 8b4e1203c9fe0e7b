"""Parts of items of MCP servers: tools, arguments, results, errors and decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any, Final, TypeAlias

from responses_app.web.render.block_parts import ARGUMENTS, BlockPart, error_part, picture_part, text_part
from responses_app.web.render.result_pictures import content_parts, part_url
from responses_app.web.render.sanitize import visible

Item: TypeAlias = Mapping[str, Any]


def _listing(item: Item) -> Iterator[BlockPart]:
    if item.get("error"):
        yield error_part(_error_text(item["error"]))
    tools = [tool for tool in item.get("tools") or () if isinstance(tool, Mapping)]
    if tools:
        yield text_part("\n".join(_tool_line(tool) for tool in tools), "Tools")


def _tool_line(tool: Item) -> str:
    description = tool.get("description")
    return f"{tool.get('name')}: {description}" if description else str(tool.get("name"))


def _call(item: Item) -> Iterator[BlockPart]:
    positions = count()
    yield text_part(item.get("arguments") or "", ARGUMENTS)
    if item.get("output") is not None:
        parts = content_parts(item["output"])
        yield from [text_part(item["output"])] if parts is None else (_part(part, positions) for part in parts)
    error = item.get("error")
    if error is not None:
        yield error_part(_error_text(error))
        parts = content_parts(error.get("content")) if isinstance(error, Mapping) else None
        yield from (picture_part(next(positions), url) for part in parts or () if (url := part_url(part)) is not None)


def _part(part: Item, positions: Iterator[int]) -> BlockPart:
    """Return a content part: a picture, a text, or a note for a part that the page cannot show."""
    url = part_url(part)
    return picture_part(next(positions), url) if url is not None else text_part(_part_text(part))


def _part_text(part: Item) -> Any:
    if part["type"] in ("image", "audio"):
        return f"[{part['type']}, {part.get('mimeType')}, {len(str(part.get('data') or ''))} characters of base64]"
    return part.get("text") or part


def _error_text(error: Any) -> str:
    if not isinstance(error, Mapping):
        return str(error)
    if error.get("type") == "http_error":
        return f"The MCP server answered with the HTTP status {error.get('code')}: {error.get('message')}"
    if error.get("type") != "mcp_tool_execution_error":
        return f"The call failed: {error.get('message') or json.dumps(error, ensure_ascii=False)}"
    texts = [_part_text(part) for part in content_parts(error.get("content")) or () if part_url(part) is None]
    shown = (text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) for text in texts)
    return "The tool reported an error: " + "\n".join(shown)


def _request(item: Item) -> Iterator[BlockPart]:
    yield text_part(item.get("arguments") or "{}", ARGUMENTS)


def _response(item: Item) -> Iterator[BlockPart]:
    yield BlockPart(note="Approved" if item.get("approve") else "Denied")
    if item.get("reason"):
        yield BlockPart(note=visible(f"Reason: {str(item['reason'])[:2000]}"))


KINDS: Final[Mapping[str, Callable[[Item], Iterator[BlockPart]]]] = {
    "mcp_list_tools": _listing,
    "mcp_call": _call,
    "mcp_approval_request": _request,
    "mcp_approval_response": _response,
}
