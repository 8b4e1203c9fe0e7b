"""A stream in which something goes wrong is cut off: its client must not wait for an end that never comes."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from django.db import OperationalError
from django.test import SimpleTestCase

from project.api_handler import ApiHandler
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
        with self.assertLogs("responses.asgi", "ERROR"):
            self.assertEqual(self.sent(OperationalError("gone")), ["http.response.start", "http.response.cut"])
