"""Filters of MCP tools: allowed tools, approvals, tools that may be repeated."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.tools.mcp import filters

READER = {"name": "read", "annotations": {"readOnlyHint": True}}
WRITER = {"name": "write", "annotations": {"readOnlyHint": False, "idempotentHint": True}}
UNKNOWN = {"name": "touch"}


@pytest.mark.parametrize(
    ("allowed", "names"),
    [
        pytest.param(None, ["read", "write", "touch"], id="all"),
        pytest.param([], [], id="none"),
        pytest.param(["read", "touch"], ["read", "touch"], id="names"),
        pytest.param({"tool_names": ["write"]}, ["write"], id="names in a filter"),
        pytest.param({"read_only": True}, ["read"], id="read-only tools"),
        pytest.param({"read_only": False}, ["write", "touch"], id="tools that write, or may write"),
        pytest.param({"tool_names": ["write", "read"], "read_only": True}, ["read"], id="both"),
        pytest.param({}, [], id="empty filter"),
    ],
)
def test_allowed_tools(allowed: Any, names: list[str]) -> None:
    assert [tool["name"] for tool in (READER, WRITER, UNKNOWN) if filters.is_allowed(tool, allowed)] == names


@pytest.mark.parametrize(
    ("rule", "names"),
    [
        pytest.param("always", ["read", "write", "touch"], id="always"),
        pytest.param("never", [], id="never"),
        pytest.param({"never": {"tool_names": ["read"]}}, ["write", "touch"], id="never for a name"),
        pytest.param({"never": {"read_only": True}}, ["write", "touch"], id="never for read-only tools"),
        pytest.param({"always": {"tool_names": ["write"]}}, ["read", "write", "touch"], id="the others as well"),
        pytest.param(
            {"always": {"tool_names": ["read"]}, "never": {"read_only": True}}, ["read", "write", "touch"], id="always wins"
        ),
        pytest.param({}, ["read", "write", "touch"], id="empty object"),
    ],
)
def test_approvals(rule: Any, names: list[str]) -> None:
    assert [tool["name"] for tool in (READER, WRITER, UNKNOWN) if filters.needs_approval(tool, rule)] == names


def test_tools_that_may_be_repeated() -> None:
    assert [filters.is_repeatable(tool) for tool in (READER, WRITER, UNKNOWN)] == [True, True, False]
