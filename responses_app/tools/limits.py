"""Limits of server tools."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Limits of a response's tool calls, with the defaults of the settings. Fields in seconds end in `_s`."""

    connect_timeout_s: float = 10
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
    # Calls and rounds of a response.
    calls: int = 64
    rounds: int = 32

    @classmethod
    def from_settings(cls) -> ToolLimits:
        """Read the limits from Django's settings."""
        return cls(
            connect_timeout_s=settings.RESPONSES_TOOL_CONNECT_TIMEOUT,
            idle_timeout_s=settings.RESPONSES_TOOL_IDLE_TIMEOUT,
            call_timeout_s=settings.RESPONSES_TOOL_CALL_TIMEOUT,
            result_prompt_bytes=settings.RESPONSES_TOOL_RESULT_PROMPT_BYTES,
            result_bytes=settings.RESPONSES_TOOL_RESULT_BYTES,
            list_pages=settings.RESPONSES_MCP_LIST_PAGES,
            mcp_tools=settings.RESPONSES_MCP_TOOLS,
            parallel_calls=settings.RESPONSES_TOOL_PARALLEL_CALLS,
            calls=settings.RESPONSES_TOOL_CALLS,
            rounds=settings.RESPONSES_TOOL_ROUNDS,
        )
