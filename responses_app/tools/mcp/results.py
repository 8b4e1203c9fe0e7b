"""Results of MCP calls, as the output and the error of an `mcp_call` item."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from responses_app.tools.outputs.truncation import truncate_to_bytes

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class McpOutcome:
    """Result of a call: an output, or an error object."""

    output: str | None = None
    error: Json | None = None


def outcome(content: Sequence[Json], structured: object, max_bytes: int, *, is_error: bool) -> McpOutcome:
    """Return the outcome of a result with the parts `content` and the value `structured`.

    Texts are joined by line breaks. A structured value counts only without text. With other parts the output is the JSON of all
    parts. At most `max_bytes` bytes of texts and parts stay; a notice names the rest.
    """
    if is_error:
        return McpOutcome(error={"type": "mcp_tool_execution_error", "content": _bounded(content, max_bytes)})
    if all(part["type"] == "text" for part in content):
        text = "\n".join(part["text"] for part in content)
        if not text and structured is not None:
            text = _dump(structured)
        return McpOutcome(cut(text, max_bytes))
    return McpOutcome(_dump(_bounded(content, max_bytes)))


def cut(text: str, max_bytes: int) -> str:
    """Return the first `max_bytes` bytes of `text`, with a notice if something was cut."""
    start, count = truncate_to_bytes(text, max_bytes)
    return f"{start}\n[… {count:,} more characters were cut]" if count else text


def _bounded(parts: Sequence[Json], max_bytes: int) -> list[Json]:
    """Cut texts, and replace other parts by notices, behind `max_bytes` bytes of all parts."""
    shown, left = list[Json](), max_bytes
    for part in parts:
        size = len(_dump(part).encode("utf-8", "surrogatepass"))
        if size <= left:
            shown.append(part)
        elif part["type"] == "text":
            shown.append({"type": "text", "text": cut(part["text"], max(left, 0))})
        else:
            kind = " ".join(str(part[key]) for key in ("type", "mimeType") if key in part)
            notice = f"[A part was left out because the result is too long: {kind}, {size:,} bytes]"
            shown.append({"type": "text", "text": notice})
            continue
        left -= min(size, left)
    return shown


def _dump(value: object) -> str:
    """Return JSON; integers of any size are possible."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
