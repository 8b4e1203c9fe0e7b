"""Parts of results that an item shows only if the request names them in `include`.

The log is the response: a part that was not included when the response was made is in no event, and no later request shows it.
The model reads such a part all the same.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from responses_app.protocol.deltas import Delta
from responses_app.protocol.items.server_tools.tool_result import ToolResult
from responses_app.tools.declaration import dump
from responses_app.tools.registry import OPTIONAL_PARTS


def drop_excluded(delta: Delta, include: Collection[str]) -> Delta:
    """Return the result `delta` without the parts that `include` does not name. A dropped part becomes `model_text` if that is None."""
    if not isinstance(delta, ToolResult) or type(delta) not in OPTIONAL_PARTS:
        return delta
    optional = OPTIONAL_PARTS[type(delta)]
    shown = optional.drop(delta, include)
    if shown == delta or delta.model_text is not None:
        return shown
    parts = {key: value for key, value in optional.parts_of(delta).items() if value}
    return replace(shown, model_text=dump(parts) if parts else None)
