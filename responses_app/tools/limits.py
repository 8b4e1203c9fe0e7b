"""Limits of server tools."""

from __future__ import annotations

import time
from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of a response's tool calls, with the defaults of the settings. Fields in seconds end in `_s`."""

    connect_timeout_s: float = 10
    # Of an MCP server that is a program, from its start.
    start_timeout_s: float = 60
    # Without a message or a progress notification.
    idle_timeout_s: float = 60
    # From the beginning of a call to the end.
    call_timeout_s: float = 300
    # Bytes of a result in the prompt.
    result_prompt_bytes: int = 100_000
    # Bytes of a result in the log.
    result_bytes: int = 1_000_000
    list_pages: int = 32
    # Tools of a single MCP server.
    mcp_tools: int = 128
    parallel_calls: int = 8
    # Calls of a response.
    calls: int = 64

    @classmethod
    def from_settings(cls) -> ToolLimits:
        """Read the limits from Django's settings."""
        return cls(
            connect_timeout_s=settings.RESPONSES_TOOL_CONNECT_TIMEOUT,
            start_timeout_s=settings.RESPONSES_MCP_START_TIMEOUT,
            idle_timeout_s=settings.RESPONSES_TOOL_IDLE_TIMEOUT,
            call_timeout_s=settings.RESPONSES_TOOL_CALL_TIMEOUT,
            result_prompt_bytes=settings.RESPONSES_TOOL_RESULT_PROMPT_BYTES,
            result_bytes=settings.RESPONSES_TOOL_RESULT_BYTES,
            list_pages=settings.RESPONSES_MCP_LIST_PAGES,
            mcp_tools=settings.RESPONSES_MCP_TOOLS,
            parallel_calls=settings.RESPONSES_TOOL_PARALLEL_CALLS,
            calls=settings.RESPONSES_TOOL_CALLS,
        )


class CallClock:
    """Clock of an MCP call: the time that is left within the limit of silence and the limit of the whole call."""

    def __init__(self, limits: ToolLimits) -> None:
        self._limits, self._began_s = limits, time.monotonic()
        self._active_s = self._began_s

    def restart_idle(self) -> None:
        """Begin the idle time again."""
        self._active_s = time.monotonic()

    @property
    def left_s(self) -> float:
        """Seconds that are left."""
        now, limits = time.monotonic(), self._limits
        return max(min(self._active_s + limits.idle_timeout_s, self._began_s + limits.call_timeout_s) - now, 0.0)

    @property
    def message(self) -> str:
        """Message of the limit that was reached."""
        if time.monotonic() >= self._began_s + self._limits.call_timeout_s:
            return f"The call took longer than {self._limits.call_timeout_s:g} seconds and was stopped."
        return f"The MCP server was silent for {self._limits.idle_timeout_s:g} seconds, so the call was stopped."
