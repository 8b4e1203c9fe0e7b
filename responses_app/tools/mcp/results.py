"""Results of MCP calls, as the output and the error of an `mcp_call` item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpOutcome:
    """Result of a call: an output, or an error object."""

    output: str | None = None
    error: Json | None = None


def outcome(content: Sequence[Json], structured: object, max_bytes: int, *, is_error: bool) -> McpOutcome:
    """Return the outcome of a result with the parts `content` and the value `structured`.

    Texts are joined by line breaks. A structured value counts only without text. With other parts the output is the JSON of all
    parts. At most `max_bytes` bytes are kept; the rest is replaced by a notice.
    """
    if is_error:
        parts = [part if part.get("type") != "text" else {**part, "text": cut(part["text"], max_bytes)} for part in content]
        return McpOutcome(error={"type": "mcp_tool_execution_error", "content": _bounded(parts, max_bytes)})
    if all(part["type"] == "text" for part in content):
        text = "\n".join(part["text"] for part in content)
        if not text and structured is not None:
            text = orjson.dumps(structured).decode()
        return McpOutcome(cut(text, max_bytes))
    return McpOutcome(cut(orjson.dumps(_bounded(content, max_bytes)).decode(), 2 * max_bytes))


def cut(text: str, max_bytes: int) -> str:
    """Return the first `max_bytes` bytes of `text`, with a notice if something was cut."""
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text
    start = data[:max_bytes].decode("utf-8", "ignore")
    return f"{start}\n[{len(text) - len(start)} more characters were cut.]"


def _bounded(parts: Sequence[Json], max_bytes: int) -> list[Json]:
    """Replace the parts behind `max_bytes` bytes of JSON by notices."""
    kept, left = list[Json](), max_bytes
    for part in parts:
        size = len(orjson.dumps(part))
        left -= size
        kept.append(part if left >= 0 else {"type": "text", "text": f"[A part of type {part['type']} was cut: {size} bytes.]"})
    return kept
