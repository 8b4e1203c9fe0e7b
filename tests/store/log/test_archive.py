"""An archived log reads as before, for new and present readers; two archivers at a time archive a log once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import IntegrityError, connection, transaction
from django.test import TestCase, TransactionTestCase

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store import response_list
from responses_app.store.log import archive, reader
from tests.support.store.log_records import NOW, frame, log
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.waiting import LIMIT_S


def apart(work: Callable[[], Any]) -> Any:
    """Call `work` and close the connection of this thread."""
    try:
        return work()
    finally:
        connection.close()


class SealTest(TestCase):
    """Against the real database."""

    async def read(self, row: Response, after: int = -1) -> list[EventFrame]:
        """Return the events of a replay."""
        return [one async for one in reader.stored_frames(row.pk, after)]

    async def test_log_reads_the_same_before_and_after_archiving(self) -> None:
        frames = log_frames(2500)
        row = await sync_to_async(stored_response)(frames)
        self.assertEqual(await self.read(row), frames)
        before = await reader.snapshot(row.pk)
        self.assertEqual(await sync_to_async(archive.archive_log)(row.pk), len(frames))
        self.assertEqual(await Event.objects.acount(), 0)
        self.assertEqual(await LogPage.objects.acount(), 4)
        for after in (-1, 0, 7, 998, 999, 1000, 2000, len(frames) - 2, len(frames) - 1, len(frames), 2**31 - 1):
            with self.subTest(after=after):
                self.assertEqual(await self.read(row, after), frames[after + 1 :])
        self.assertEqual(await reader.snapshot(row.pk), before)

    async def test_logs_of_any_length_can_be_sealed(self) -> None:
        for count in (0, 1, 2, 999, 1000, 1001, 1002):
            with self.subTest(count=count):
                frames = [frame(n) for n in range(count)]
                row = await sync_to_async(stored_response)(frames, f"resp_{count}")
                self.assertEqual(await sync_to_async(archive.archive_log)(row.pk), count)
                self.assertEqual(await self.read(row), frames)
                self.assertEqual((await Response.objects.aget(pk=row.pk)).log_form, LogForm.PAGES)
                if count:
                    last = await LogPage.objects.filter(response=row).order_by("last").alast()
                    assert last is not None
                    self.assertEqual((last.first, last.last), (count - 1 if count > 2 else 0, count - 1))

    async def test_long_log_has_a_page_for_the_last_event(self) -> None:
        for text, pages in (("a" * 100, 1), ("a" * archive.SINGLE_PAGE_BYTES, 2)):
            with self.subTest(pages=pages):
                frames = [frame(0, delta=text), frame(1), frame(2)]
                row = await sync_to_async(stored_response)(frames, f"resp_{pages}")
                await sync_to_async(archive.archive_log)(row.pk)
                self.assertEqual(await LogPage.objects.filter(response=row).acount(), pages)
                for after in range(-1, 3):
                    self.assertEqual(await self.read(row, after), frames[after + 1 :])

    def test_the_snapshot_and_a_list_are_one_query_each(self) -> None:
        for number in range(5):
            row = stored_response(log_frames(30), f"resp_{number}")
            if number % 2:
                archive.archive_log(row.pk)
        with self.assertNumQueries(1):
            snapshot = async_to_sync(reader.snapshot)(row.pk)
        with self.assertNumQueries(1):
            shelf = async_to_sync(response_list.page)(
                "p", response_list.ResponseFilter(), limit=10, newest_first=True, after=None
            )
        assert shelf is not None
        self.assertEqual([body for _, body in shelf.rows], [snapshot] * 5)

    def test_only_what_has_ended_is_sealed_and_only_once(self) -> None:
        running, ended = stored_response(log_frames(3), "resp_a", ended_at=None), stored_response(log_frames(3), "resp_b")
        self.assertEqual(archive.list_unarchived(NOW + timedelta(seconds=1), 10), [ended.pk])
        self.assertEqual(archive.list_unarchived(NOW, 10), [])
        self.assertEqual(archive.archive_log(running.pk), 0)
        self.assertEqual(archive.archive_log(ended.pk), len(log_frames(3)))
        self.assertEqual(archive.archive_log(ended.pk), 0)
        self.assertEqual(archive.list_unarchived(NOW + timedelta(seconds=1), 10), [])

    def test_logs_to_archive_are_found_by_an_index(self) -> None:
        Response.objects.bulk_create([log(f"resp_{n}").row for n in range(2000)])
        Response.objects.update(ended_at=NOW, log_form=LogForm.PAGES)
        stored_response(log_frames(1), "resp_new")
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE responses_app_response")
        due_responses = Response.objects.filter(log_form=LogForm.ROWS, ended_at__lt=NOW).order_by("ended_at")
        self.assertIn("response_log_form", due_responses.explain())

    def test_a_writer_that_was_replaced_cannot_add_to_a_sealed_log(self) -> None:
        row = stored_response(log_frames(3))
        archive.archive_log(row.pk)
        for number in (1, 4, len(log_frames(3))):
            with self.subTest(number=number), self.assertRaises(IntegrityError), transaction.atomic():
                Event.objects.create(response=row, number=number, type="x", data="{}")

    def test_a_row_that_comes_late_is_not_lost(self) -> None:
        frames = log_frames(3)
        row = stored_response(frames)
        late = mock.patch.object(archive, "_read", return_value=({row.pk: frames[:-1]}, {}))
        with late, self.assertRaises(archive.LogChanged):
            archive.archive_log(row.pk)
        self.assertEqual((Event.objects.count(), LogPage.objects.count()), (len(frames), 0))
        self.assertEqual(reader.read(row.pk), frames)


class TogetherTest(TransactionTestCase):
    """Several connections at a time."""

    def test_processes_that_seal_the_same_logs_seal_each_once(self) -> None:
        frames = log_frames(40)
        keys = [stored_response(frames, f"resp_{n}").pk for n in range(20)]
        with ThreadPoolExecutor(4) as pool:
            work = [pool.submit(apart, lambda: [archive.archive_log(pk) for pk in keys]) for _ in range(4)]
            counts = [one.result() for one in work]
        self.assertEqual([sum(each) for each in zip(*counts, strict=True)], [len(frames)] * len(keys))
        for pk in keys:
            self.assertEqual(reader.read(pk), frames)

    @pytest.mark.slow
    def test_a_reader_in_the_middle_sees_every_event_once(self) -> None:
        frames = log_frames(700)
        keys = [stored_response(frames, f"resp_{n}").pk for n in range(12)]

        async def read(pk: int, turn: int) -> list[EventFrame]:
            """Read a log whose archiving starts meanwhile. In odd turns the reader waits for the end of the archiving."""
            seen = []
            async for one in reader.stored_frames(pk):
                seen.append(one)
                if one.number == 50 * (turn + 1):
                    archiving = pool.submit(apart, lambda: archive.archive_log(pk))
                    if turn % 2:
                        archiving.result(LIMIT_S)
            archiving.result(LIMIT_S)
            return seen

        with ThreadPoolExecutor(1) as pool, mock.patch.object(reader, "PAGE_SIZE", 100):
            for turn, pk in enumerate(keys):
                self.assertEqual(async_to_sync(read)(pk, turn), frames)
        self.assertEqual(Event.objects.count(), 0)

    def test_a_log_is_sealed_between_the_two_questions_of_a_reader(self) -> None:
        frames = log_frames(20)
        row = stored_response(frames)
        rows = reader.rows

        def late(*args: Any) -> list[EventFrame]:
            listed_rows = rows(*args)
            with ThreadPoolExecutor(1) as pool:
                pool.submit(apart, lambda: archive.archive_log(row.pk)).result()
            return listed_rows

        with mock.patch.object(reader, "rows", late):
            self.assertEqual(reader.read(row.pk), frames)
            self.assertEqual(reader.read(row.pk, frames[-2].number), frames[-1:])
