"""Base class of the executors of server tools: calls are items of one type, and nothing runs before the first generation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from responses_app.protocol.deltas import Delta
from responses_app.tools.base import Json


class ServerToolExecutor:
    """Part of a `ToolExecutor` that server tools other than MCP share. `call_type` is the type of the items."""

    call_type: ClassVar[str]
    # Whether a call changes nothing, so that a second run after a crash is safe.
    repeatable: ClassVar[bool]

    def openings(self, items: Sequence[Json]) -> Sequence[Delta]:
        """Return no openings: these tools need no listing and no approval."""
        del items
        return ()

    def can_run(self, item: Json) -> bool:
        """Return True for calls of the tool."""
        return bool(item["type"] == self.call_type)

    def counts(self, item: Json) -> bool:
        """Return True: each call counts for the limits."""
        del item
        return True

    def is_repeatable(self, call: Json) -> bool:
        """Return whether a second run of `call` is safe."""
        del call
        return self.repeatable
