"""What a run has held is given back when it ends, and not when the garbage collector comes by, which is seldom."""

from __future__ import annotations

import asyncio
import gc
import weakref

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from tests.support.api.case import HELLO, ApiCase, tokens

LIMIT = 10.0


class FreedTest(ApiCase):
    """With a hub as every process has it."""

    async def test_a_run_is_gone_when_it_has_ended(self) -> None:
        gc.disable()
        try:
            async with self.serving(Recording([Delay(0.2), Tokens(tokens(HELLO))])) as client:
                await self.made(client, background=True)
                (run,) = (weakref.ref(one) for one in self.hub.runs.values())
                async with asyncio.timeout(LIMIT):
                    while self.hub.runs:
                        await asyncio.sleep(0.02)
                await asyncio.sleep(0.02)
                self.assertIsNone(run())
        finally:
            gc.enable()
