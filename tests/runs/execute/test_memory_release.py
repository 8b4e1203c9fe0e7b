"""Memory of a run: freed at the end, without the garbage collector."""

from __future__ import annotations

import asyncio
import gc
import weakref

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from tests.support.api.case import HELLO, ApiCase, tokens
from tests.support.waiting import eventually


class MemoryReleaseTest(ApiCase):
    """With a hub as every process has it."""

    async def test_a_run_is_gone_when_it_has_ended(self) -> None:
        gc.disable()
        try:
            async with self.serving(Recording([Delay(0.2), Tokens(tokens(HELLO))])) as client:
                answered = asyncio.ensure_future(self.made(client, background=True))
                # While the request is under way: on a slow machine the run may be over before the answer is here.
                await eventually(lambda: self.hub.runs)
                (run,) = (weakref.ref(one) for one in self.hub.runs.values())
                await answered
                await eventually(lambda: not self.hub.runs)
                # The garbage collector is off: only the end of the last reference frees the run.
                await eventually(lambda: run() is None)
        finally:
            gc.enable()
