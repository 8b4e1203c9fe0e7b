"""Page of the operator's MCP servers: values that are shown, the test of a server, and who may see the page."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings

from responses_app.installation.data_dir import ROOT
from responses_app.tools.mcp.servers import operator_server
from responses_app.web.mcp_servers import run_test
from tests.support.mcp.raw_program import raw_program
from tests.support.mcp.serving import STDIO
from tests.support.web.page_case import WebCase

pytestmark = pytest.mark.slow

SECRETS = ("tok-authorization", "hdr-secret-value", "env-secret-value", "query-secret", "argument-secret")
SERVERS: dict[str, dict[str, Any]] = {
    "docs": {
        "url": "http://127.0.0.1:9/mcp?key=query-secret#query-secret",
        "authorization": "tok-authorization",
        "headers": {"X-Key": "hdr-secret-value"},
        "description": "Product <documentation>",
        "connector_id": "connector_docs",
    },
    "files": {"command": [*STDIO, "argument-secret"], "env": {"KEY": "env-secret-value", "PYTHONPATH": str(ROOT)}},
}
# A server that repeats its credential in the description of a tool.
REPEATING = raw_program(
    "pass", tools='[{"name": "f", "inputSchema": {"type": "object"}, "description": "The key is " + os.environ["KEY"]}]'
)


@override_settings(RESPONSES_MCP_SERVERS=SERVERS)
class McpServersTest(WebCase):
    """Page for superusers, with a server that is not reachable and the server of the tests."""

    mcp_url: str

    @pytest.fixture(autouse=True)
    def class_url(self, mcp_url: str) -> None:
        type(self).mcp_url = mcp_url

    def press_test(self, label: str) -> str:
        """Press the button of a server and return the page without secrets."""
        answer = self.client.post(f"/mcp-servers/{label}/test")
        self.assertEqual(answer.status_code, 200)
        text: str = answer.content.decode()
        self.assertEqual([secret for secret in SECRETS if secret in text], [])
        return text

    def test_servers_are_shown_without_credentials(self) -> None:
        text = self.page("/mcp-servers")
        self.assertEqual([secret for secret in SECRETS if secret in text], [])
        for shown in ("<code>http://127.0.0.1:9/mcp</code>", "Product &lt;documentation&gt;", "connector_docs", sys.executable):
            self.assertIn(shown, text)

    def test_empty_setting_is_named_with_the_docs(self) -> None:
        with override_settings(RESPONSES_MCP_SERVERS={}):
            text = self.page("/mcp-servers")
        self.assertIn("No MCP servers. Set <code>RESPONSES_MCP_SERVERS</code>", text)
        self.assertIn("docs/settings.md#mcp-servers", text)

    def test_tools_of_a_program_are_listed(self) -> None:
        text = self.press_test("files")
        self.assertIn("Connected.", text)
        self.assertInHTML("<dd>Get the weather of a city.<br><small class='quiet'>readOnlyHint: true</small></dd>", text)

    def test_tools_of_an_http_server_are_listed(self) -> None:
        with override_settings(RESPONSES_MCP_SERVERS={"web": {"url": self.mcp_url}}):
            self.assertIn("Delete a file of the server.", self.press_test("web"))

    def test_error_of_a_server_is_shown(self) -> None:
        self.assertIn("The MCP server cannot be reached.", self.press_test("docs"))

    def test_unknown_label_is_not_found(self) -> None:
        self.assertEqual(self.client.post("/mcp-servers/other/test").status_code, 404)

    def test_test_needs_post_and_a_csrf_token(self) -> None:
        self.assertEqual(self.client.get("/mcp-servers/files/test").status_code, 405)
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(self.operator)
        self.assertEqual(strict.post("/mcp-servers/files/test").status_code, 403)

    def test_page_is_for_superusers(self) -> None:
        self.assertIn("/mcp-servers", self.page("/"))
        self.client.force_login(User.objects.create_user("ada", is_staff=True))
        self.assertEqual(self.client.get("/mcp-servers").status_code, 403)
        self.assertEqual(self.client.post("/mcp-servers/files/test").status_code, 403)
        self.assertNotIn("/mcp-servers", self.page("/"))
        self.client.logout()
        self.assertRedirects(self.client.get("/mcp-servers"), "/sign-in?next=/mcp-servers")


@pytest.mark.parametrize("secret", ["env-secret-value", "Bearer env-secret-value"])
def test_repeated_credential_is_redacted(secret: str) -> None:
    values = {"command": REPEATING, "env": {"KEY": secret}}
    result = asyncio.run(run_test(operator_server("r", values)))
    assert result.error == ""
    assert [tool.description for tool in result.tools] == ["The key is [redacted]"]


def test_silent_server_ends_the_test_after_the_limit() -> None:
    values = {"command": [sys.executable, "-c", "import sys; sys.stdin.read()"]}
    with override_settings(RESPONSES_MCP_START_TIMEOUT=0.5):
        result = asyncio.run(run_test(operator_server("s", values), limit_s=0))
    assert result.error == "The MCP server did not list its tools within 0.5 seconds."
