"""Log writer: appends become durable in order, and a bad append does not make others fail."""

from __future__ import annotations

import asyncio
from unittest import mock

from django.db import DatabaseError, OperationalError
from django.test import TestCase

from responses_app.models import Event, Item, Response
from responses_app.store.log import reader
from responses_app.store.log.group_commit import was_committed, write
from responses_app.store.log.records import Append, Ending, Route
from responses_app.store.log.writer import LogWriter
from tests.support.store.log_records import NOW, USAGE, durable, frame, log
from tests.support.waiting import run_ready_tasks


def nothing(error: Exception | None) -> None:
    """Ignore the outcome of an append."""


class RecorderTest(TestCase):
    """Against the real database."""

    async def test_callback_runs_after_the_rows_are_stored(self) -> None:
        recorder, one, seen = LogWriter(), log(), []

        def look(error: Exception | None) -> None:
            seen.append((error, one.row.pk))

        recorder.enqueue(lambda: Append(one, [frame(0), frame(1)], opens=True), look, Route.ROWS)
        self.assertEqual(seen, [])
        await durable(recorder, Append(log("resp_2"), [frame(0)], opens=True))
        self.assertEqual(seen, [(None, one.row.pk)])
        self.assertEqual([f.number for f in await reader.frames(one.row.pk)], [0, 1])
        self.assertEqual(await Item.objects.filter(response=one.row).acount(), 1)
        await recorder.close()

    async def test_stored_bytes_are_exact(self) -> None:
        recorder, one = LogWriter(), log()
        odd = frame(0, delta='tab\t back\\slash \\N NUL\x00 quote" newline\n ünïcödé 🦕 \u2028')
        await durable(recorder, Append(one, [odd], opens=True))
        self.assertEqual((await reader.frames(one.row.pk))[0].data, odd.data)
        await recorder.close()

    async def test_log_keeps_no_append_behind_its_end(self) -> None:
        """Entries refer to the log, so that only the garbage collector would free these with all frames."""
        recorder, one = LogWriter(), log()
        await durable(recorder, Append(one, [frame(0)], opens=True))
        self.assertEqual(len(one.recent), 1)
        await durable(recorder, Append(one, [frame(1, "response.completed")], ending=Ending("completed", NOW, [], USAGE)))
        self.assertEqual(one.recent, [])
        await recorder.close()

    async def test_ending_is_stored_with_items_and_usage(self) -> None:
        recorder, one = LogWriter(), log()
        recorder.enqueue(lambda: Append(one, [frame(0)], opens=True), nothing, Route.ROWS)
        done = frame(1, "response.completed", response={"id": "resp_1"})
        ending = Ending("completed", NOW, [{"id": "msg_2", "type": "message"}], USAGE)
        await durable(recorder, Append(one, [done], ending=ending))
        row = await Response.objects.aget(uid="resp_1")
        self.assertEqual(
            (row.status, row.input_tokens, row.cached_tokens, row.output_tokens, row.reasoning_tokens),
            ("completed", 5, 2, 7, 3),
        )
        self.assertEqual([item.uid async for item in row.items.order_by("pk")], ["msg_resp_1", "msg_2"])
        self.assertEqual(await reader.snapshot(row.pk), b'{"id":"resp_1"}')
        await recorder.close()

    async def test_a_bad_append_does_not_take_its_neighbours_with_it(self) -> None:
        recorder, good, bad = LogWriter(), log("resp_good"), log("resp_bad")
        done = await asyncio.gather(
            durable(recorder, Append(good, [frame(0)], opens=True)),
            durable(recorder, Append(bad, [frame(0), frame(0)], opens=True)),
        )
        self.assertIsNone(done[0])
        self.assertIsInstance(done[1], DatabaseError)
        self.assertEqual([row.uid async for row in Response.objects.all()], ["resp_good"])
        self.assertEqual(await Event.objects.acount(), 1)
        await recorder.close()

    async def test_a_commit_whose_answer_was_lost_is_not_made_twice(self) -> None:
        recorder, one, tries = LogWriter(), log(), []

        def lose_the_answer(appends: list[Append]) -> None:
            tries.append(appends)
            write(appends)
            if len(tries) == 1:
                raise OperationalError("the connection is lost")

        with mock.patch.multiple("responses_app.store.log.writer", write=lose_the_answer, check_connection=lambda: False):
            self.assertIsNone(await durable(recorder, Append(one, [frame(0)], opens=True)))
        self.assertEqual(len(tries), 2)
        self.assertIsNone(await durable(recorder, Append(one, [frame(1)])))
        self.assertEqual([f.number for f in await reader.frames(one.row.pk)], [0, 1])
        await recorder.close()

    async def test_a_database_lost_again_after_a_lost_answer_is_waited_for(self) -> None:
        recorder, one, questions = LogWriter(), log(), []

        def lose_the_answer(appends: list[Append]) -> None:
            write(appends)
            raise OperationalError("the connection is lost")

        def lose_the_question(appends: list[Append]) -> bool:
            questions.append(appends)
            if len(questions) == 1:
                raise OperationalError("the connection is lost")
            return was_committed(appends)

        module = "responses_app.store.log.writer"
        with (
            mock.patch.multiple(module, write=lose_the_answer, check_connection=lambda: False),
            mock.patch(f"{module}.was_committed", lose_the_question),
        ):
            self.assertIsNone(await durable(recorder, Append(one, [frame(0)], opens=True)))
        self.assertEqual(len(questions), 2)
        await recorder.close()

    async def test_a_connection_that_somebody_has_opened_since_does_not_make_a_loss_final(self) -> None:
        recorder, one, tries = LogWriter(), log(), []

        def end(appends: list[Append]) -> None:
            tries.append(appends)
            if len(tries) == 1:
                raise OperationalError("terminating connection due to administrator command")
            write(appends)

        with mock.patch("responses_app.store.log.writer.write", end):
            self.assertIsNone(await durable(recorder, Append(one, [frame(0)], opens=True)))
        self.assertEqual([f.number for f in await reader.frames(one.row.pk)], [0])
        await recorder.close()

    async def test_closed_writer_refuses_appends_after_writing_earlier_ones(self) -> None:
        recorder, one = LogWriter(), log()
        first = asyncio.create_task(durable(recorder, Append(one, [frame(0)], opens=True)))
        await run_ready_tasks()
        await recorder.close()
        self.assertIsNone(await first)
        self.assertIsInstance(await durable(recorder, Append(one, [frame(1)])), DatabaseError)
        self.assertEqual(await Event.objects.acount(), 1)

    async def test_a_commit_with_a_transaction_does_not_delay_deltas_of_others(self) -> None:
        recorder, opening, running, opened = LogWriter(), log("resp_opening"), log("resp_running"), asyncio.Event()
        await durable(recorder, Append(running, [frame(0)], opens=True))
        commit = recorder._commit

        async def delay_openings(appends: list[Append]) -> None:
            if any(append.needs_transaction for append in appends):
                await opened.wait()
            await commit(appends)

        with mock.patch.object(recorder, "_commit", delay_openings):
            waiting = asyncio.create_task(durable(recorder, Append(opening, [frame(0)], opens=True)))
            self.assertIsNone(await durable(recorder, Append(running, [frame(1)])))
            self.assertFalse(waiting.done())
            opened.set()
            self.assertIsNone(await waiting)
        await recorder.close()
