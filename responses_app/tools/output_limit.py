"""Length limit of the outputs of server tools in prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def limit_tool_output(item: Mapping[str, Any], max_bytes: int) -> Mapping[str, Any]:
    """Return `item` with the first `max_bytes` bytes of the output of an MCP call, and a notice of the cut behind.

    The stored item keeps the whole output.
    """
    output = item.get("output")
    if item.get("type") != "mcp_call" or not isinstance(output, str) or len(output) <= max_bytes // 4:
        return item
    data = output.encode("utf-8", "surrogatepass")
    if len(data) <= max_bytes:
        return item
    start = data[:max_bytes].decode("utf-8", "ignore")
    return {**item, "output": f"{start}\n[The output is too long: {len(output) - len(start)} more characters were cut.]"}
