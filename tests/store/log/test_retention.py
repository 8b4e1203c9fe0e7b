"""Old responses are deleted in batches; all others answer as before."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from io import StringIO
from unittest import mock

from asgiref.sync import async_to_sync, sync_to_async
from django.core.management import call_command
from django.core.management.base import CommandError, OutputWrapper
from django.test import TestCase, TransactionTestCase, override_settings

from responses_app.errors import InvalidRequest
from responses_app.management.progress import ProgressLine
from responses_app.models import (
    Conversation,
    ConversationItem,
    Event,
    Item,
    Lease,
    LogForm,
    LogPage,
    Response,
    StoredRequest,
    WebhookDelivery,
    WebhookEndpoint,
)
from responses_app.protocol.encoding import EventFrame
from responses_app.runs import maintenance
from responses_app.runs.maintenance import archive_due, prune_due
from responses_app.store.content import batches, history
from responses_app.store.content.deletion import erase
from responses_app.store.log import reader, retention
from responses_app.store.log.archive import archive_log
from responses_app.store.log.writer import LogWriter
from tests.support.store.log_records import NOW
from tests.support.store.response_chains import chain
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.store.table_contents import contents
from tests.support.waiting import eventually

SOON = NOW + timedelta(seconds=1)
DAY = timedelta(days=1)


def prune(name: str) -> int:
    """Return the number of responses that the rule was applied to."""
    return sum(retention.prune(name, SOON))


class RetentionTest(TestCase):
    """Against the real database."""

    def test_without_its_deltas_a_log_still_answers_get_and_has_all_other_events(self) -> None:
        for count, pages in ((2500, 2), (20, 1)):
            with self.subTest(pages=pages):
                self.check_erased_deltas(log_frames(count), pages)

    def check_erased_deltas(self, frames: list[EventFrame], pages: int) -> None:
        """Store a log, archive it, and erase its deltas, which leaves `pages` pages."""
        LogPage.objects.all().delete()
        row = stored_response(frames, f"resp_{pages}")
        self.assertEqual(prune("deltas"), 0)
        archive_log(row.pk)
        snapshot = async_to_sync(reader.snapshot)(row.pk)
        size = sum(len(page.data) for page in LogPage.objects.all())
        self.assertEqual(prune("deltas"), 1)
        self.assertEqual(prune("deltas"), 0)
        self.assertEqual(async_to_sync(reader.snapshot)(row.pk), snapshot)
        self.assertEqual(reader.read(row.pk), [frame for frame in frames if not frame.type.endswith(".delta")])
        self.assertEqual(LogPage.objects.count(), pages)
        self.assertLess(sum(len(page.data) for page in LogPage.objects.all()), size)

    def test_pruned_log_is_not_replayed(self) -> None:
        row = stored_response(log_frames(20))
        reader.check_replayable(row)
        archive_log(row.pk)
        prune("deltas")
        row.refresh_from_db()
        with self.assertRaises(InvalidRequest):
            reader.check_replayable(row)

        async def read() -> None:
            async for _ in reader.stored_frames(row.pk):
                pass

        # As one would see it who had begun before.
        with self.assertRaises(reader.DeltasErased):
            async_to_sync(read)()

    async def test_descendants_of_what_was_pruned_keep_their_whole_context(self) -> None:
        recorder = LogWriter()
        await chain(recorder, "resp_a", "resp_b", "resp_c")
        await recorder.close()
        await Response.objects.filter(uid="resp_c").aupdate(ended_at=NOW + DAY)
        await sync_to_async(archive_log)((await Response.objects.aget(uid="resp_b")).pk)
        self.assertEqual(await sync_to_async(prune)("responses"), 2)
        context = await history.context("p", "resp_c")
        assert context is not None
        self.assertEqual(len(context.items), 6)
        await Response.objects.aupdate(ended_at=NOW)
        self.assertEqual(await sync_to_async(prune)("responses"), 1)
        self.assertEqual(await Item.objects.acount() + await Event.objects.acount() + await LogPage.objects.acount(), 0)

    def test_batches_follow_each_other_and_what_runs_stays(self) -> None:
        for number in range(7):
            stored_response(log_frames(2), f"resp_{number}", ended_at=NOW if number else None)
        with mock.patch.object(batches, "FIRST_BATCH", 4):
            self.assertEqual(sum(retention.prune("responses", SOON)), 6)
        self.assertEqual([row.uid for row in Response.objects.all()], ["resp_0"])

    def test_the_server_does_what_the_settings_say(self) -> None:
        old, new = stored_response(log_frames(2), "resp_old"), stored_response(log_frames(2), "resp_new", ended_at=NOW + DAY)
        now = NOW + DAY + timedelta(seconds=31)
        with override_settings(RESPONSES_SEAL_AFTER=None):
            self.assertEqual(list(archive_due(now)), [])
        self.assertEqual(sum(archive_due(now)), 2 * len(log_frames(2)))
        self.assertEqual(list(prune_due(now)), [])
        with override_settings(RESPONSES_KEEP_DELTAS=timedelta(hours=1)):
            self.assertEqual(list(prune_due(now)), [1])
        old.refresh_from_db()
        new.refresh_from_db()
        self.assertEqual((old.log_form, new.log_form), (LogForm.WITHOUT_DELTAS, LogForm.PAGES))
        with override_settings(RESPONSES_KEEP_RESPONSES=timedelta(hours=1)):
            self.assertEqual(list(prune_due(now)), [1])
        self.assertEqual([row.uid for row in Response.objects.all()], ["resp_new"])


class LogEraseTest(TestCase):
    """DELETE is for good."""

    MARK = "resp_mark"

    def test_no_table_keeps_a_byte_of_it(self) -> None:
        for seals in (False, True):
            with self.subTest(seals=seals):
                row = stored_response(log_frames(20), self.MARK)
                conversation = Conversation.objects.create(uid="conv_1", project="p", created_at=NOW)
                Item.objects.create(uid="msg_mark", response=row, project="p", type="message", body='{"text":"resp_mark"}')
                other = Item.objects.create(uid="msg_other", response=row, project="p", type="message", body="{}")
                ConversationItem.objects.create(conversation=conversation, item=other, uid="msg_other")
                StoredRequest.objects.create(response=row, create_request='{"x":"resp_mark"}', prompt_tokens=b"resp_mark")
                Lease.objects.create(response=row, model=self.MARK)
                if seals:
                    archive_log(row.pk)
                self.assertTrue(erase("p", self.MARK))
                self.assertNotIn("mark", contents())
                # The data of a page is not to be read as text.
                self.assertEqual(LogPage.objects.count(), 0)
                # A conversation keeps its items.
                self.assertEqual(Item.objects.get().pk, other.pk)
                Conversation.objects.all().delete()
                Item.objects.all().delete()


class Terminal(StringIO):
    """Output that is a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


class CommandTest(TestCase):
    """`manage.py prune`."""

    def prune(self, *arguments: str) -> str:
        """Run the command and return the output."""
        out = StringIO()
        call_command("prune", "--pause=0", *arguments, stdout=out)
        return out.getvalue()

    def setUp(self) -> None:
        archive_log(stored_response(log_frames(5), "resp_a").pk)
        stored_response(log_frames(5), "resp_b", stored=False, background=True)
        endpoint = WebhookEndpoint.objects.create(
            uid="we_1", project="p", event_types=[], secret=b"x", created_at=NOW, updated_at=NOW
        )
        WebhookDelivery.objects.create(uid="msg_1", endpoint=endpoint, response_uid="resp_b", created_at=NOW, due_at=NOW)

    def test_command_prunes_only_named_kinds(self) -> None:
        with override_settings(RESPONSES_KEEP_RESPONSES=None):
            output = self.prune("--temporary=off", "--deliveries=off")
        kept = "".join(f"{kind}: kept, no age given\n" for kind in ("deltas", "responses", "temporary", "items", "deliveries"))
        self.assertEqual(output, f"{kept}refused requests: 0 deleted\nfiles: 0 deleted\naudit: 0 deleted\n")
        self.assertEqual(Response.objects.count(), 2)

    def test_a_dry_run_counts_and_does_nothing(self) -> None:
        output = self.prune("--dry-run", "--deltas=0s", "--responses=1d", "--items=off", "--deliveries=0s")
        counts = {
            "responses": 2,
            "temporary": 1,
            "deltas": 1,
            "approvals": 0,
            "refused requests": 0,
            "files": 0,
            "deliveries": 1,
        }
        expected = "".join(f"{kind}: {count} would be deleted\n" for kind, count in counts.items())
        self.assertEqual(output, f"items: kept, no age given\n{expected}audit: 0 would be deleted\n")
        self.assertEqual((Response.objects.count(), LogPage.objects.count(), WebhookDelivery.objects.count()), (2, 1, 1))

    def test_command_deletes_and_prints_totals(self) -> None:
        output = self.prune("--deltas=1m", "--responses=1h", "--temporary=10m", "--deliveries=1h")
        self.assertIn("responses: 2 deleted\n", output)
        self.assertIn("deliveries: 1 deleted\n", output)
        self.assertEqual(Response.objects.count() + Event.objects.count() + LogPage.objects.count(), 0)
        self.assertEqual(WebhookDelivery.objects.count(), 0)

    def test_progress_is_one_line_on_a_terminal_and_a_line_now_and_then_elsewhere(self) -> None:
        for is_terminal, separator in ((True, "\r\x1b[K"), (False, "\n")):
            out, now = Terminal() if is_terminal else StringIO(), [0.0]
            with self.subTest(is_terminal=is_terminal):
                progress = ProgressLine(OutputWrapper(out), "responses", 90_000, partial(now.__getitem__, 0))
                for _ in range(30):
                    now[0] += 0.5
                    progress.add(1000)
                progress.end("responses: 30000 deleted")
                lines = list(filter(None, out.getvalue().rstrip("\n").split(separator)))
                self.assertEqual(lines[-1], "responses: 30000 deleted")
                self.assertEqual(lines[-2 if is_terminal else 0].split(", ", 1)[1].split(", ")[0], "2,000 a second")
                self.assertEqual(len(lines), 31 if is_terminal else 2)
                self.assertIn("responses: 20,000 of 90,000, 2,000 a second, 35 s left", lines)

    def test_an_age_that_is_none_is_refused(self) -> None:
        with self.assertRaises(CommandError):
            self.prune("--deltas=soon")


class UpkeepTest(TransactionTestCase):
    """The task of the hub, which has a separate connection."""

    async def test_maintenance_archives_until_cancelled(self) -> None:
        row = await sync_to_async(stored_response)(log_frames(5))
        with (
            mock.patch.object(maintenance, "ARCHIVE_EVERY_S", 0.01),
            mock.patch.object(maintenance, "PRUNE_EVERY_S", 0.01),
            override_settings(RESPONSES_SEAL_AFTER=timedelta(0)),
        ):
            task = asyncio.create_task(maintenance.upkeep({}))
            await eventually(Response.objects.filter(pk=row.pk, log_form=LogForm.PAGES).aexists)
            self.assertFalse(task.done())
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
