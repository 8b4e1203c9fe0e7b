"""Warm-up of a process: what is loaded before the first request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from django.test import override_settings

from responses_app.runs.recover.warm_up import WarmUp
from responses_app.tools.mcp import sessions
from responses_app.tools.mcp.session import McpSession


@pytest.mark.parametrize(
    ("servers", "imported"),
    [({}, []), ({"docs": {"url": "http://127.0.0.1:9/mcp"}}, [McpSession])],
    ids=["without servers", "with servers"],
)
def test_library_for_mcp_servers_is_imported_where_the_operator_has_servers(
    servers: Mapping[str, Any], imported: list[type[McpSession]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_imported", {})

    async def warm_up() -> bool:
        process = WarmUp({})
        await process.finish()
        return process.is_done

    with override_settings(RESPONSES_MCP_SERVERS=servers):
        assert asyncio.run(warm_up())
    assert [*sessions._imported.values()] == imported
