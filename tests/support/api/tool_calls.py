"""Model output that calls a tool."""

from __future__ import annotations

import orjson


def call(name: str, arguments: object) -> str:
    """Return the output of a model that calls this tool."""
    return (
        f"<|channel|>analysis<|message|>Do it.<|end|><|start|>assistant<|channel|>commentary to=functions.{name} <|constrain|>json"
        f"<|message|>{orjson.dumps(arguments).decode()}<|call|>"
    )
