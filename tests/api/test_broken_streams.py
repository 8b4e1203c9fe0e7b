"""A stream in which something goes wrong is cut off, and a request without a stream is told why: no client waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import patch

from django.db import OperationalError
from django.test import SimpleTestCase

from project.api_handler import ApiHandler
from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import Response
from responses_app.observability.records import ObservedRequest, current_request
from responses_app.wire.sse import StreamInterrupted
from tests.support.api.case import ApiCase, tokens
from tests.support.waiting import eventually


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
            await ApiHandler()({"method": "POST", "path": "/v1/responses"}, send, send)  # type: ignore[arg-type]

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


class DeletedResponseTest(ApiCase):
    """A response that an erasure deletes although it still runs."""

    async def test_request_for_a_response_that_was_deleted_says_so(self) -> None:
        endless = Recording([Tokens(tokens("<|channel|>final<|message|>Once upon")), Delay(600), Tokens(tokens("<|return|>"))])
        async with self.serving(endless) as client:
            waiting = asyncio.create_task(self.post(client))
            await eventually(lambda: self.hub.runs)
            (run,) = self.hub.runs.values()
            # All that the engine has generated is stored.
            await eventually(lambda: any(b" upon" in frame.data for frame in run.broadcast.frames))
            await Response.objects.filter(uid=run.uid).adelete()
            # As the watch does when the lease is gone.
            run.hand_over()
            answer = await waiting
        self.assertEqual(answer.status_code, 404)
        self.assertIn(f"The response with id '{run.uid}' was deleted while it ran.", answer.content.decode())
