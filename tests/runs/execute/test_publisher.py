"""A run goes on while its last event is committed: what is seen, and what is kept, must not show it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from unittest.mock import patch

from django.db import OperationalError

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.runs.execute.run import Run
from responses_app.store.log.records import Append
from responses_app.store.log.writer import LogWriter
from tests.support.api.case import HELLO, ApiCase, tokens

LIMIT = 10.0
BEGUN = ["response.created", "response.queued", "response.in_progress"]
ENDLESS = Recording([*(Tokens([token]) for token in tokens(HELLO)[:-1]), Delay(60.0), Tokens(tokens(HELLO)[-1:])])


class Gate(LogWriter):
    """Keeps deltas waiting until it is opened; then `fault` is what becomes of them, if there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.open = asyncio.Event(), asyncio.Event()
        self.fault: Exception | None = None

    async def _write(self, appends: list[Append]) -> Exception | None:
        if not any(append.opens or append.starts or append.ending for append in appends):
            self.reached.set()
            await self.open.wait()
            if self.fault is not None:
                return self.fault
        return await super()._write(appends)


class TellingTest(ApiCase):
    @asynccontextmanager
    async def held(self) -> AsyncIterator[tuple[Run, Gate]]:
        """A run whose first delta is being committed, and has a second one to tell."""
        async with self.serving(ENDLESS) as client:
            with patch("responses_app.runs.manager.LogWriter", Gate):
                await self.made(client, background=True)
            (run,), gate = self.hub.runs.values(), self.hub._recorder
            assert isinstance(gate, Gate)
            async with asyncio.timeout(LIMIT):
                await gate.reached.wait()
            # The engine has said more by now, which waits.
            await asyncio.sleep(0.05)
            yield run, gate

    async def ended(self, run: Run) -> None:
        """It is over."""
        async with asyncio.timeout(LIMIT):
            while run.uid in self.hub.runs:
                await asyncio.sleep(0.01)

    async def test_nothing_is_seen_before_it_is_kept(self) -> None:
        async with self.held() as (run, gate):
            self.assertEqual([frame.type for frame in run.frames], BEGUN)
            gate.open.set()
            async with asyncio.timeout(LIMIT):
                while not run.frames[-1].type.endswith(".delta"):
                    await asyncio.sleep(0.01)
            run.cancel()
            await self.ended(run)

    async def test_a_client_that_goes_meanwhile_leaves_no_number_out(self) -> None:
        async with self.held() as (run, gate):
            run.cancel()
            await asyncio.sleep(0.01)
            gate.open.set()
            await self.ended(run)
            self.assertEqual([frame.number for frame in run.frames], list(range(len(run.frames))))
            self.assertEqual(run.response["status"], "cancelled")
            self.assertEqual(run.frames[-1].type, "response.failed")
            self.assertFalse(run.handed_over)

    async def refused_append(self, fault: Exception) -> None:
        """What is left when the append under way is not kept."""
        async with self.held() as (run, gate):
            gate.fault = fault
            gate.open.set()
            await self.ended(run)
            self.assertTrue(run.handed_over, "others go on with it")
            self.assertEqual([frame.type for frame in run.frames], BEGUN)

    # Two tests, not two rounds: who goes on with the first run would be there in the second.
    async def test_append_refused_by_the_database_ends_the_log(self) -> None:
        await self.refused_append(OperationalError("no"))

    async def test_failed_append_ends_the_log(self) -> None:
        await self.refused_append(RuntimeError("no"))
