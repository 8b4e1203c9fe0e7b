"""Outputs of server tools in prompts: text alone, up to a length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput

PART_TYPES = frozenset({"audio", "image", "resource", "resource_link", "text"})


def limit_tool_output(item: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any]:
    """Return `item` with the output of a server tool as the model reads it. The stored item has the whole output.

    Pictures and other parts that are no text become notices. Behind `max_bytes` bytes the output is cut, with a notice.
    """
    shown = item.get(MODEL_OUTPUT)
    if shown is not None:
        return {**item, MODEL_OUTPUT: _limit(shown, max_bytes)}
    output = item.get("output")
    if item.get("type") != "mcp_call" or not isinstance(output, str):
        return item
    text = _cut(_text_of_parts(output), max_bytes)
    return item if text is output else {**item, "output": text}


def _limit(output: ModelOutput, max_bytes: int) -> ModelOutput:
    text = _cut(output.text, max_bytes) if output.text else output.text
    notices = [_describe({"type": "image", "mimeType": url[5:].partition(";")[0]}) for url in output.images]
    return ModelOutput("\n".join([*([text] if text else []), *notices]) if notices else text)


def _cut(text: str, max_bytes: int) -> str:
    if len(text) <= max_bytes // 4:
        return text
    data = text.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return text
    start = data[:max_bytes].decode("utf-8", "ignore")
    return f"{start}\n[The output is too long: {len(text) - len(start)} more characters were cut.]"


def _text_of_parts(output: str) -> str:
    """Return the text of an output that is a list of content parts in JSON; any other output unchanged."""
    if not output.startswith('[{"'):
        return output
    try:
        parts = orjson.loads(output)
    except orjson.JSONDecodeError:
        return output
    if not all(map(_is_part, parts)) or all(part["type"] == "text" for part in parts):
        return output
    return "\n".join(_describe(part) for part in parts)


def _is_part(value: object) -> bool:
    return isinstance(value, dict) and value.get("type") in PART_TYPES


def _describe(part: Mapping[str, Any]) -> str:
    if part["type"] == "text":
        return str(part.get("text", ""))
    resource = part.get("resource") or {}
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    names: Sequence[object] = (part.get("mimeType") or resource.get("mimeType"), part.get("uri") or resource.get("uri"))
    details = ", ".join(str(name) for name in names if name)
    return (
        f"[The result has a part of type {part['type']}{f' ({details})' if details else ''}, which is shown to the user alone.]"
    )
