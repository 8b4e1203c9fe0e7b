"""Test case of requests with an MCP server."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.test import AsyncClient, override_settings

from tests.support.api.case import ApiCase


class McpCase(ApiCase):
    """A scripted model, and the MCP server of the tests under the label `files`."""

    tool: ClassVar[dict[str, Any]]

    @pytest.fixture(autouse=True)
    def class_tool(self, mcp_url: str) -> None:
        type(self).tool = {"type": "mcp", "server_label": "files", "server_url": mcp_url}

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.enterClassContext(override_settings(RESPONSES_MCP_PRIVATE_HOSTS=frozenset({"127.0.0.1"})))

    async def request_of(self, client: AsyncClient, **body: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a response that ends with a request for an approval, and the request."""
        made = await self.made(client, tools=[self.tool], **body)
        self.assertEqual((made["status"], made["output"][-1]["type"]), ("completed", "mcp_approval_request"))
        return made, made["output"][-1]

    def calls(self, made: dict[str, Any]) -> list[tuple[str | None, str | None]]:
        """Return approval and output of each call."""
        return [(item["approval_request_id"], item["output"]) for item in made["output"] if item["type"] == "mcp_call"]
