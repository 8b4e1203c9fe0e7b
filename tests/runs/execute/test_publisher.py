"""Publishing while the previous event is committed: visible and stored events stay the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import patch

from django.db import OperationalError

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import Response
from responses_app.runs.execute.run import Run
from responses_app.store.content.conversations import ConversationLocked
from responses_app.store.log.records import Append
from responses_app.store.log.writer import LogWriter
from tests.support.api.case import HELLO, THOUGHT, ApiCase, record_text, tokens
from tests.support.waiting import LIMIT_S, eventually, run_ready_tasks

PUBLISHER = "responses_app.runs.execute.publisher"
FIRST_TYPES = ["response.created", "response.queued", "response.in_progress"]
ENDLESS = Recording([*(Tokens([token]) for token in tokens(HELLO)[:-1]), Delay(60.0), Tokens(tokens(HELLO)[-1:])])


class GatedLogWriter(LogWriter):
    """Log writer that delays appends of deltas until `opened` is set, and then refuses these with `fault`, if given.

    With `delays_openings` the openings wait, too. `sizes` are the numbers of frames of the appends.
    """

    delays_openings = False

    def __init__(self) -> None:
        super().__init__()
        self.reached, self.opened = asyncio.Event(), asyncio.Event()
        self.fault: Exception | None = None
        self.sizes: list[int] = []

    async def _write(self, appends: list[Append]) -> Exception | None:
        self.sizes += [len(append.frames) for append in appends]
        opens = any(append.opens or append.starts for append in appends)
        if self.delays_openings if opens else not any(append.ending for append in appends):
            self.reached.set()
            await self.opened.wait()
            if self.fault is not None:
                return self.fault
        return await super()._write(appends)


class OpeningGate(GatedLogWriter):
    delays_openings = True


class PublisherTest(ApiCase):
    def log_writer(self) -> GatedLogWriter:
        """Return the log writer of the started manager."""
        assert self.hub.services is not None
        assert isinstance(self.hub.services.recorder, GatedLogWriter)
        return self.hub.services.recorder

    @asynccontextmanager
    async def gated_run(self) -> AsyncIterator[tuple[Run, GatedLogWriter]]:
        """Yield a run that has taken all its tokens, and whose first deltas are being committed."""
        async with self.serving(ENDLESS) as client:
            with patch("responses_app.runs.manager.LogWriter", GatedLogWriter):
                await self.made(client, background=True)
            (run,), gate = self.hub.runs.values(), self.log_writer()
            async with asyncio.timeout(LIMIT_S):
                await gate.reached.wait()
            await eventually(lambda: run._rounds.total.output == len(tokens(HELLO)) - 1)
            yield run, gate

    async def ended(self, run: Run) -> None:
        """Wait until the run has ended."""
        await eventually(lambda: run.uid not in self.hub.runs)

    async def test_nothing_is_seen_before_it_is_kept(self) -> None:
        async with self.gated_run() as (run, gate):
            self.assertEqual([frame.type for frame in run.broadcast.frames], FIRST_TYPES)
            gate.opened.set()
            await eventually(lambda: run.broadcast.frames[-1].type.endswith(".delta"))
            run.cancel()
            await self.ended(run)

    async def test_an_error_while_events_are_shown_stops_no_run_that_waits_for_the_commit(self) -> None:
        async with self.gated_run() as (run, gate):
            errors = [RuntimeError("no")]

            def fail_once() -> None:
                if errors:
                    raise errors.pop()

            run.broadcast.on_frames = fail_once
            run.cancel()
            await eventually(lambda: run.publisher._committed is not None)
            with self.assertLogs("responses.log", "ERROR"):
                gate.opened.set()
                await self.ended(run)
            self.assertEqual(errors, [])

    async def test_times_of_events_do_not_follow_a_jump_of_the_clock(self) -> None:
        async with self.gated_run() as (run, gate):
            with patch("time.time", return_value=time.time() - 86_400):
                run.cancel()
                gate.opened.set()
                await self.ended(run)
            times = [frame.ms for frame in run.broadcast.frames]
            self.assertEqual((times, min(times) >= 0), (sorted(times), True))

    async def test_a_response_does_not_end_before_its_creation(self) -> None:
        async with self.gated_run() as (run, gate):
            with patch("time.time", return_value=time.time() - 86_400):
                run.cancel()
                gate.opened.set()
                await self.ended(run)
            row = await Response.objects.aget(uid=run.uid)
            assert row.ended_at is not None
            self.assertEqual(row.ended_at.timestamp(), run.writer.response["created_at"])

    @asynccontextmanager
    async def opening_run(self) -> AsyncIterator[tuple[Run, GatedLogWriter, asyncio.Future[Any]]]:
        """Yield a run that has taken all its tokens while its opening is being committed, and the answer to the client."""
        async with self.serving(ENDLESS) as client:
            with patch("responses_app.runs.manager.LogWriter", OpeningGate):
                answer = asyncio.ensure_future(self.post(client, background=True))
                await eventually(lambda: self.engine.requests)
            (run,), gate = self.hub.runs.values(), self.log_writer()
            await eventually(lambda: run._rounds.total.output == len(tokens(HELLO)) - 1)
            yield run, gate, answer

    async def test_everything_generated_during_a_commit_leaves_in_the_next_append(self) -> None:
        async with self.opening_run() as (run, gate, answer):
            events = run._output.writer._number
            self.assertEqual((run.broadcast.frames, answer.done()), ([], False))
            gate.opened.set()
            self.assertEqual((await answer).status_code, 200)
            await eventually(lambda: len(run.broadcast.frames) == events)
            self.assertEqual(gate.sizes, [len(FIRST_TYPES), events - len(FIRST_TYPES)])
            run.cancel()
            await self.ended(run)

    async def test_a_client_that_goes_meanwhile_leaves_no_number_out(self) -> None:
        async with self.gated_run() as (run, gate):
            run.cancel()
            await run_ready_tasks(10)
            gate.opened.set()
            await self.ended(run)
            self.assertEqual([frame.number for frame in run.broadcast.frames], list(range(len(run.broadcast.frames))))
            self.assertEqual(run.writer.response["status"], "cancelled")
            self.assertEqual(run.broadcast.frames[-1].type, "response.failed")
            self.assertFalse(run.broadcast.handed_over)

    async def refused_append(self, fault: Exception) -> None:
        """Refuse the append under way with `fault`. The run ends although its engine is silent, and no event follows."""
        async with self.gated_run() as (run, gate):
            gate.fault = fault
            gate.opened.set()
            await self.ended(run)
            self.assertTrue(run.broadcast.handed_over, "other processes continue the run")
            self.assertEqual([frame.type for frame in run.broadcast.frames], FIRST_TYPES)
            self.assertIn(run.uid, self.engine.aborted)

    # Two tests and no loop: the successor of the first run would interfere with the second run.
    async def test_append_refused_by_the_database_ends_the_log(self) -> None:
        await self.refused_append(OperationalError("no"))

    async def test_failed_append_ends_the_log(self) -> None:
        await self.refused_append(RuntimeError("no"))

    async def test_a_run_with_many_uncommitted_events_takes_no_more_tokens(self) -> None:
        line = record_text("<|channel|>final<|message|>" + "Hello there! " * 20 + "<|return|>")
        async with self.serving(line) as client:
            with (
                patch("responses_app.runs.manager.LogWriter", GatedLogWriter),
                patch("responses_app.runs.execute.publisher.MAX_UNCOMMITTED_EVENTS", 4),
            ):
                made = await self.made(client, background=True)
                (run,), gate = self.hub.runs.values(), self.log_writer()
                await eventually(lambda: run.publisher.is_full)
                await run_ready_tasks(50)
                # A chunk makes a few events at most.
                self.assertLess(run._output.writer._number, 12)
                gate.opened.set()
                await self.ended(run)
            self.assertEqual((run.writer.response["id"], run.writer.response["status"]), (made["id"], "completed"))
            self.assertLess(max(gate.sizes), 12)
            self.assertEqual([frame.number for frame in run.broadcast.frames], list(range(len(run.broadcast.frames))))

    @patch.multiple(PUBLISHER, COALESCE_AFTER_S=0.0, MAX_COALESCE_S=60.0)
    async def test_a_run_whose_commit_lags_lets_the_engine_join_tokens(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            with patch("responses_app.runs.manager.LogWriter", GatedLogWriter):
                await self.made(client, background=True)
            (run,), gate = self.hub.runs.values(), self.log_writer()
            await eventually(lambda: run.publisher.is_full)
            await run_ready_tasks(50)
            self.assertLess(run._rounds.total.output, len(tokens(THOUGHT)) - 4)
            gate.opened.set()
            await self.ended(run)
            self.assertEqual(run.writer.response["status"], "completed")

    @patch.multiple(PUBLISHER, COALESCE_AFTER_S=0.0, MAX_COALESCE_S=0.0)
    async def test_a_run_whose_commit_lags_for_long_takes_tokens_again(self) -> None:
        async with self.gated_run() as (run, gate):
            gate.opened.set()
            run.cancel()
            await self.ended(run)

    async def test_a_refused_opening_ends_the_generation_that_has_begun(self) -> None:
        async with self.opening_run() as (run, gate, answer):
            gate.fault = ConversationLocked("no")
            gate.opened.set()
            self.refused(await answer, 400, "conversation_locked", "conversation")
            self.assertEqual((run.broadcast.frames, self.engine.aborted), ([], [run.uid]))
            self.assertFalse(await Response.objects.aexists())
