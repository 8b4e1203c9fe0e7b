"""Publishing while the previous event is committed: visible and stored events stay the same."""

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
from tests.support.waiting import LIMIT_S, eventually, run_ready_tasks

FIRST_TYPES = ["response.created", "response.queued", "response.in_progress"]
ENDLESS = Recording([*(Tokens([token]) for token in tokens(HELLO)[:-1]), Delay(60.0), Tokens(tokens(HELLO)[-1:])])


class GatedLogWriter(LogWriter):
    """Log writer that delays appends of deltas until `opened` is set, and then refuses these with `fault`, if given."""

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self.fault: Exception | None = None

    async def _write(self, appends: list[Append]) -> Exception | None:
        if not any(append.opens or append.starts or append.ending for append in appends):
            self.reached.set()
            await self.opened.wait()
            if self.fault is not None:
                return self.fault
        return await super()._write(appends)


class PublisherTest(ApiCase):
    @asynccontextmanager
    async def gated_run(self) -> AsyncIterator[tuple[Run, GatedLogWriter]]:
        """Yield a run whose first delta is being committed while a second delta waits."""
        async with self.serving(ENDLESS) as client:
            with patch("responses_app.runs.manager.LogWriter", GatedLogWriter):
                await self.made(client, background=True)
            (run,), gate = self.hub.runs.values(), self.hub._recorder
            assert isinstance(gate, GatedLogWriter)
            async with asyncio.timeout(LIMIT_S):
                await gate.reached.wait()
            # The run waits for the commit with the second chunk of the engine.
            await eventually(lambda: run._publisher._idle is not None and not run._publisher._idle.done())
            yield run, gate

    async def ended(self, run: Run) -> None:
        """Wait until the run has ended."""
        await eventually(lambda: run.uid not in self.hub.runs)

    async def test_nothing_is_seen_before_it_is_kept(self) -> None:
        async with self.gated_run() as (run, gate):
            self.assertEqual([frame.type for frame in run.frames], FIRST_TYPES)
            gate.opened.set()
            await eventually(lambda: run.frames[-1].type.endswith(".delta"))
            run.cancel()
            await self.ended(run)

    async def test_a_client_that_goes_meanwhile_leaves_no_number_out(self) -> None:
        async with self.gated_run() as (run, gate):
            run.cancel()
            await run_ready_tasks(10)
            gate.opened.set()
            await self.ended(run)
            self.assertEqual([frame.number for frame in run.frames], list(range(len(run.frames))))
            self.assertEqual(run.response["status"], "cancelled")
            self.assertEqual(run.frames[-1].type, "response.failed")
            self.assertFalse(run.handed_over)

    async def refused_append(self, fault: Exception) -> None:
        """Refuse the append under way with `fault`, and check that no event of the run follows."""
        async with self.gated_run() as (run, gate):
            gate.fault = fault
            gate.opened.set()
            await self.ended(run)
            self.assertTrue(run.handed_over, "other processes continue the run")
            self.assertEqual([frame.type for frame in run.frames], FIRST_TYPES)

    # Two tests and no loop: the successor of the first run would interfere with the second run.
    async def test_append_refused_by_the_database_ends_the_log(self) -> None:
        await self.refused_append(OperationalError("no"))

    async def test_failed_append_ends_the_log(self) -> None:
        await self.refused_append(RuntimeError("no"))
