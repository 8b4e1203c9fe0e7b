"""Limits of tools: the settings, and their defaults."""

from __future__ import annotations

from django.test import override_settings

from responses_app.tools.limits import ToolLimits


def test_limits_of_the_default_settings_are_the_defaults() -> None:
    assert ToolLimits.from_settings() == ToolLimits()


@override_settings(RESPONSES_TOOL_CALLS=3, RESPONSES_TOOL_IDLE_TIMEOUT=7, RESPONSES_MCP_TOOLS=2)
def test_limits_follow_the_settings() -> None:
    limits = ToolLimits.from_settings()
    assert (limits.calls, limits.idle_timeout_s, limits.mcp_tools) == (3, 7, 2)
