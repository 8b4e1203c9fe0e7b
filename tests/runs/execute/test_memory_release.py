"""What a run has held is given back when it ends, and not when the garbage collector comes by, which is seldom."""

from __future__ import annotations

import gc
import weakref

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from tests.support.api.case import HELLO, ApiCase, tokens
from tests.support.waiting import eventually, run_ready_tasks


class MemoryReleaseTest(ApiCase):
    """With a hub as every process has it."""

    async def test_a_run_is_gone_when_it_has_ended(self) -> None:
        gc.disable()
        try:
            async with self.serving(Recording([Delay(0.2), Tokens(tokens(HELLO))])) as client:
                await self.made(client, background=True)
                (run,) = (weakref.ref(one) for one in self.hub.runs.values())
                await eventually(lambda: not self.hub.runs)
                await run_ready_tasks(10)
                self.assertIsNone(run())
        finally:
            gc.enable()
