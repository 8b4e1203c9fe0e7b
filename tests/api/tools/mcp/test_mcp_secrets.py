"""Credentials for MCP servers: used for the calls, also after a take-over, and in no table, log, page or download."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from responses_app.models import Lease, Response
from responses_app.runs import manager
from responses_app.runs.create_request import CreateRequest
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.runs.server_tools.executors import server_tools
from responses_app.store.log.archive import archive_log
from responses_app.tools.base import ToolExecutor
from tests.support.api.case import HELLO, record_text
from tests.support.api.mcp_case import McpCase
from tests.support.store.table_contents import contents
from tests.support.waiting import LIMIT_S, eventually

TOKEN, KEY = "s3cret-token", "s3cret-key"
HEADERS = {"X-Key": KEY, "Authorization": f"Bearer {TOKEN}"}
PAGES = ("", "/events", "/events/0", "/wire", "/prompt", "/chain", "/check", ".jsonl", ".json", ".sse")


class Records(logging.Handler):
    """Handler that collects formatted records."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@contextmanager
def log_records(level: int = logging.DEBUG) -> Iterator[list[str]]:
    """Collect the records of all loggers, those of libraries included; `level` is that of the libraries."""
    # The import of this module silences the client library. Restored levels must not undo that.
    import_module("responses_app.tools.mcp.session")
    handler, names = Records(), ("", "responses", "mcp", "httpx2", "httpcore2")
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if logger.name == "responses" else level)
    try:
        yield handler.lines
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


def call(name: str, **arguments: Any) -> str:
    text = json.dumps(arguments)
    return f"<|channel|>commentary to=functions.files__{name} <|constrain|>json<|message|>{text}<|call|>"


class McpSecretsTest(McpCase):
    """A scripted model, and a tool with credentials."""

    def secret_tool(self, **fields: Any) -> dict[str, Any]:
        return {**self.tool, "authorization": TOKEN, "headers": {"X-Key": KEY}, "require_approval": "never", **fields}

    def recording_hub(self, requests: list[CreateRequest]) -> RunManager:
        """Return a hub that appends the request of each run to `requests`."""

        def tools_for(create_request: CreateRequest, uid: str) -> ToolExecutor | None:
            requests.append(create_request)
            return server_tools(create_request, uid)

        return RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)}, tools_for=tools_for)

    def assert_clean(self, place: str, data: bytes) -> None:
        for secret in (TOKEN, KEY):
            for form in (secret.encode(), secret.encode().hex().encode()):
                self.assertNotIn(form, data, place)

    async def assert_nowhere(self, client: AsyncClient, uid: str, records: list[str]) -> None:
        """Check tables, log records, the API and the pages of a response."""
        self.assert_clean("tables", (await sync_to_async(contents)("%")).encode())
        self.assert_clean("log records", "\n".join(records).encode())
        for path in ("", "/input_items", "?stream=true"):
            self.assert_clean(path, await self.read_all(client, f"/v1/responses/{uid}{path}"))
        visitor = await self.visitor()
        for path in PAGES:
            self.assert_clean(path, await self.read_all(visitor, f"/responses/{uid}{path}"))

    async def visitor(self) -> AsyncClient:
        """Return a client with the session of a superuser."""
        visitor = AsyncClient()
        operator, _ = await User.objects.aget_or_create(username="root", is_staff=True, is_superuser=True)
        await visitor.aforce_login(operator)
        return visitor

    async def read_all(self, client: AsyncClient, url: str) -> bytes:
        answer: Any = await client.get(url)
        self.assertEqual(answer.status_code, 200, url)
        data = b"".join([part async for part in answer.streaming_content]) if answer.streaming else answer.content
        self.assertTrue(data, url)
        return data

    async def test_secrets_of_a_finished_response_are_nowhere(self) -> None:
        for background in (False, True):
            with self.subTest(background=background), log_records() as records:
                async with self.serving(record_text(call("weather", city="Rome")), record_text(HELLO)) as client:
                    made = await self.made(client, tools=[self.secret_tool()], background=background)
                    uid = made["id"]
                    await eventually(Response.objects.filter(uid=uid, status="completed").aexists)
                    self.assertFalse(await Lease.objects.aexists())
                    await self.assert_nowhere(client, uid, records)
                    await sync_to_async(archive_log)((await Response.objects.aget(uid=uid)).pk)
                    await self.assert_nowhere(client, uid, records)
                    end = json.loads((await client.get(f"/v1/responses/{uid}")).content)
                    self.assertEqual(self.calls(end), [(None, "It is warm in Rome.")])

    async def test_secrets_of_a_failed_listing_are_nowhere(self) -> None:
        for url in (self.tool["server_url"] + "/absent", "https://127.0.0.1:1/mcp"):
            with self.subTest(url=url), log_records() as records:
                async with self.serving(record_text(HELLO)) as client:
                    made = await self.made(client, tools=[self.secret_tool(server_url=url)])
                    self.assertTrue(made["output"][0]["error"])
                    await self.assert_nowhere(client, made["id"], records)

    async def test_query_of_a_url_is_not_logged(self) -> None:
        with log_records(logging.WARNING) as records:
            for url in (self.tool["server_url"], f"{self.tool['server_url']}/absent", "https://127.0.0.1:1/mcp"):
                async with self.serving(record_text(HELLO)) as client:
                    await self.made(client, tools=[self.secret_tool(server_url=f"{url}?key={KEY}")])
        self.assert_clean("log records", "\n".join(records).encode())
        self.assertTrue(records)

    async def test_query_of_a_url_is_shown_by_the_api_and_hidden_on_pages(self) -> None:
        url = f"{self.tool['server_url']}?key={KEY}"
        async with self.serving(record_text(HELLO)) as client:
            made = await self.made(client, tools=[{**self.tool, "server_url": url}])
            self.assertEqual(made["tools"][0]["server_url"], url)
            visitor = await self.visitor()
            for path in (one for one in PAGES if not one.startswith(".")):
                self.assert_clean(path, await self.read_all(visitor, f"/responses/{made['id']}{path}"))
            shown = await self.read_all(visitor, f"/responses/{made['id']}/events/0")
            self.assertIn(f"{self.tool['server_url']}?…".encode(), shown)

    async def test_refused_request_repeats_and_logs_no_secrets(self) -> None:
        with log_records() as records:
            async with self.serving() as client:
                response = await self.post(client, tools=[self.secret_tool(server_token=TOKEN)])
                self.refused(response, 400, "unknown_parameter", "tools[0].server_token")
                self.assert_clean("error", response.content)
            self.assert_clean("log records", "\n".join(records).encode())

    @pytest.mark.slow
    async def test_another_process_continues_with_the_secrets(self) -> None:
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        entered, gate = folder / "entered", folder / "gate"
        requests: list[CreateRequest] = []
        tape = [record_text(call("wait", entered=str(entered), gate=str(gate))), record_text(HELLO)]
        with log_records() as records:
            async with self.serving(*tape) as client:
                uid = (await self.made(client, tools=[self.secret_tool()], background=True))["id"]
                await eventually(entered.exists)
                self.assertIsNotNone((await Lease.objects.aget()).secrets)
                self.assert_clean("tables", (await sync_to_async(contents)("%")).encode())
                await self.crash()
                second = self.recording_hub(requests)
                try:
                    with (
                        patch("responses_app.store.cluster.leases.WORKER_TIMEOUT_S", 0.0),
                        patch("responses_app.runs.recover.lease_keeper.WORKER_TIMEOUT_S", 0.0),
                    ):
                        manager.set_current(second)
                        await second.start()
                        async with asyncio.timeout(LIMIT_S):
                            await eventually(Response.objects.filter(uid=uid, status="completed").aexists)
                    self.assertEqual([request.secrets for request in requests], [{"files": HEADERS}])
                    self.assertFalse(await Lease.objects.aexists())
                    await self.assert_nowhere(client, uid, records)
                finally:
                    await second.close()
                    await self.engine.start()
                    gate.touch()
