"""Certificates that are not accepted: a reason for MCP servers and webhooks, and authorities that the operator adds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from django.test import override_settings

from responses_app.engines.http.client import HttpVllm
from responses_app.observability.records import current_response
from responses_app.outbound_http.certificates import certificate_problem, default_ssl_context
from responses_app.outbound_http.pinned_transport import PinnedTransport
from responses_app.tools.mcp.errors import McpError
from responses_app.tools.mcp.servers import McpServer
from responses_app.tools.mcp.sessions import McpSessions
from responses_app.webhooks import sender
from responses_app.webhooks.endpoints import new_endpoint
from tests.support.images.image_server import ImageServer, certificate, run_image_server
from tests.support.mcp.raw_sessions import LIMITS

REASONS = {
    ("localhost", 1): "self-signed certificate",
    ("localhost", -1): "certificate has expired",
    ("elsewhere.example", 1): "Hostname mismatch",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The default context, which is cached, belongs to one test."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    default_ssl_context.cache_clear()
    yield monkeypatch
    default_ssl_context.cache_clear()


async def get(here: ImageServer) -> int:
    transport = PinnedTransport(allow_internal=True)
    async with httpx2.AsyncClient(transport=transport) as client:
        return (await client.get(here.url("/none", "localhost", "https"))).status_code


@pytest.mark.parametrize("case", REASONS)
def test_reason_is_named(case: tuple[str, int], tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    server, _ = certificate(tmp_path, *case)
    if case != ("localhost", 1):
        environment.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with run_image_server(server) as here, pytest.raises(httpx2.ConnectError) as refused:
        asyncio.run(get(here))
    assert certificate_problem(refused.value) == REASONS[case]


def test_authorities_of_the_operator_are_trusted(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    server, _ = certificate(tmp_path, "localhost")
    environment.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))
    with run_image_server(server) as here:
        assert asyncio.run(get(here)) == 404


def test_other_errors_are_no_matter_of_certificates() -> None:
    assert certificate_problem(httpx2.ConnectError("refused")) is None


def test_mcp_server_is_refused_with_the_reason_and_a_line_of_the_response(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, environment: pytest.MonkeyPatch
) -> None:
    async def list_tools(url: str) -> None:
        current_response.set("resp_1")
        sessions = McpSessions({"x": McpServer("x", url, is_operators=True)}, LIMITS, "project")
        try:
            await sessions.list_tools("x")
        finally:
            await sessions.close()

    environment.setattr(logging.getLogger("responses"), "propagate", True)
    refused = pytest.raises(McpError, match=r"certificate of the MCP server is not accepted: self-signed certificate\.")
    with (
        run_image_server(certificate(tmp_path, "localhost")[0]) as here,
        caplog.at_level(logging.INFO, "responses.tools"),
        refused,
    ):
        asyncio.run(list_tools(here.url("/mcp", "localhost", "https")))
    assert "resp_1: MCP server x: self-signed certificate. SSL_CERT_FILE names" in caplog.text


@pytest.mark.django_db
def test_webhook_endpoint_is_refused_with_the_reason(tmp_path: Path) -> None:
    allowed = override_settings(RESPONSES_WEBHOOK_PRIVATE_HOSTS=frozenset({"localhost"}))
    with run_image_server(certificate(tmp_path, "localhost")[0]) as here, allowed:
        url, now = here.url("/hook", "localhost", "https"), datetime.now(UTC)
        endpoint, _ = new_endpoint("default", name="x", url=url, event_types=["response.completed"])
        event = sender.WebhookEvent("wh_1", "evt_1", "response.completed", "resp_1", now)
        answer = asyncio.run(sender.send_event(endpoint, event, now))
    assert answer.error == "The certificate is not accepted: self-signed certificate."


def test_engine_that_seems_to_be_away_has_its_certificate_in_the_log_once(
    tmp_path: Path, environment: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = certificate(tmp_path, "localhost", -1)
    environment.setenv("SSL_CERT_FILE", str(tmp_path / "server.pem"))

    async def main(place: str) -> None:
        engine = HttpVllm(f"https://{place}", "m", max_model_len=128)
        await engine.start()
        for _ in range(3):
            assert not await engine.is_healthy()
        await engine.close()

    with run_image_server(server) as here:
        place = urlsplit(here.url("/none", "localhost", "https")).netloc
        asyncio.run(main(place))
    problems = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    (sentence,) = problems
    assert sentence.startswith(f"the certificate of engine {place} is not accepted (certificate has expired): SSL_CERT_FILE")
