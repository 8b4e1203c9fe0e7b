"""A stream in which something goes wrong is cut off: its client must not wait for an end that never comes."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from django.db import OperationalError
from django.test import SimpleTestCase

from project.api_handler import ApiHandler
from responses_app.observability.records import ObservedRequest, current_request
from responses_app.wire.sse import StreamInterrupted


class CutStreamTest(SimpleTestCase):
    """Streams cut as by Daphne."""

    def sent(self, error: Exception) -> list[str]:
        """The kinds of messages of a request whose stream raises."""
        sent: list[str] = []

        async def send(message: dict[str, Any]) -> None:
            sent.append(message["type"])

        async def broken(*arguments: Any) -> None:
            await send({"type": "http.response.start"})
            raise error

        async def go() -> None:
            await ApiHandler()({"path": "/v1/responses"}, send, send)  # type: ignore[arg-type]

        with patch.object(ApiHandler, "handle", broken):
            asyncio.run(go())
        return sent

    def test_a_stream_that_goes_on_elsewhere(self) -> None:
        with self.assertNoLogs("responses.asgi"):
            self.assertEqual(self.sent(StreamInterrupted()), ["http.response.start", "http.response.cut"])

    def test_a_stream_whose_database_has_gone(self) -> None:
        """The line names the request and has no traceback."""
        token = current_request.set(ObservedRequest("POST", "/v1/responses", request_id="req_1"))
        self.addCleanup(current_request.reset, token)
        with self.assertLogs("responses.asgi", "ERROR") as log:
            self.assertEqual(self.sent(OperationalError("gone")), ["http.response.start", "http.response.cut"])
        self.assertEqual(log.output, ["ERROR:responses.asgi:req_1 a stream was cut: the database is away: gone"])

    def test_a_stream_with_a_fault_of_the_program(self) -> None:
        with self.assertLogs("responses.asgi", "ERROR") as log:
            self.assertEqual(self.sent(ValueError("a fault")), ["http.response.start", "http.response.cut"])
        self.assertIsNotNone(log.records[0].exc_info)
