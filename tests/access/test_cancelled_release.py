"""Release of a slot whose request is cancelled meanwhile, in the database thread of the request."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from unittest import IsolatedAsyncioTestCase, mock

from asgiref.sync import ThreadSensitiveContext

from responses_app.access.rate_limits import AdmittedRequest
from responses_app.models import ConcurrencySlot
from responses_app.store.limits import unstored
from tests.support.waiting import LIMIT_S, eventually


class CancelledReleaseTest(IsolatedAsyncioTestCase):
    async def test_usage_is_written_though_the_request_ends_while_its_slot_is_deleted(self) -> None:
        loop, started, proceed = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def delete() -> None:
            loop.call_soon_threadsafe(started.set)
            proceed.wait(LIMIT_S)

        slots = mock.Mock(delete=delete)
        with (
            ThreadPoolExecutor(1) as thread,
            mock.patch.object(ConcurrencySlot.objects, "filter", return_value=slots),
            mock.patch.object(unstored.pending, "write") as write,
        ):
            async with ThreadSensitiveContext(executor=thread):
                release = asyncio.create_task(AdmittedRequest(slot=1).release())
                await started.wait()
                release.cancel()
                await asyncio.wait({release})
            proceed.set()
            await eventually(lambda: write.called, limit_s=20.0)
