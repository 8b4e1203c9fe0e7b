"""What becomes of a request that is cancelled before its client has gone, as at an ordered stop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping
from typing import Any

import pytest

from project.asgi import Handler


class Slow(Handler):
    """Answers nobody; notes who was cancelled."""

    cancelled = 0

    async def get_response_async(self, request: Any) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise


# Django leaves the file of a body to the garbage collector when it is cancelled.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_client_that_goes_after_its_request_was_cancelled_is_nobodys_error() -> None:
    complaints: list[Any] = []

    async def main() -> None:
        loop, gone, asked = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

        async def receive() -> dict[str, Any]:
            for message in messages:
                return message
            asked.set()
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Mapping[str, Any]) -> None:
            del message

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        handler = Slow()
        request = asyncio.create_task(handler(scope, receive, send))
        await asked.wait()
        request.cancel()
        await asyncio.wait({request})
        assert handler.cancelled == 1, "nothing goes on behind it"
        gone.set()
        await asyncio.sleep(0.05)
        gc.collect()

    asyncio.run(main())
    gc.collect()
    assert complaints == []
