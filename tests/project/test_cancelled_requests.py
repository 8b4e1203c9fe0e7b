"""Requests that are cancelled before the client disconnects, as at an ordered stop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import pytest

from project.asgi import Handler
from tests.support.waiting import run_ready_tasks


class EndlessHandler(Handler):
    """Handler that never responds; `cancelled` is the number of cancelled requests."""

    cancelled = 0

    async def get_response_async(self, request: Any) -> Any:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


# Django leaves the file of a body to the garbage collector when it is cancelled.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_goes_after_its_request_was_cancelled_is_nobodys_error() -> None:
    complaints: list[Any] = []

    async def main() -> None:
        loop, gone, is_waiting = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            is_waiting.set()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            del message

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        handler = EndlessHandler()
        request = asyncio.create_task(handler(scope, receive, send))
        await is_waiting.wait()
        request.cancel()
        await asyncio.wait({request})
        assert handler.cancelled == 1, "the view was not cancelled"
        gone.set()
        await run_ready_tasks(20)
        gc.collect()

    asyncio.run(main())
    gc.collect()
    assert complaints == []
