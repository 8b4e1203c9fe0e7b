"""Shown values of items of MCP servers: tools, arguments, results, errors and decisions."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

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
    yield item.get("arguments") or "{}"
    if item.get("output") is not None:
        yield from _output_parts(str(item["output"]))
    if item.get("error") is not None:
        yield _error(item["error"])


def _output_parts(output: str) -> Iterator[Any]:
    """Yield the texts of an output that is a JSON list of content parts, with a note for each image; else the output."""
    try:
        parts = json.loads(output)
    except ValueError:
        parts = None
    is_list = isinstance(parts, list) and parts and all(isinstance(part, dict) and "type" in part for part in parts)
    if not is_list:
        yield output
        return
    for part in parts:
        if part["type"] in ("image", "audio"):
            yield f"[{part['type']}, {part.get('mimeType')}, {len(str(part.get('data') or ''))} characters of base64]"
        else:
            yield part.get("text") or part


def _error(error: Any) -> Any:
    if not isinstance(error, Mapping):
        return f"Error: {error}"
    texts = [part.get("text") or json.dumps(part, ensure_ascii=False) for part in error.get("content") or ()]
    message = "\n".join(texts) or error.get("message") or ""
    code = f" {error['code']}" if "code" in error else ""
    return f"Error ({error.get('type')}{code}): {message}"


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
