"""Rows of openings and endings: every column, the order of items, statements that are prepared once."""

from __future__ import annotations

from uuid import uuid4

from django.db import connection
from django.test import TestCase

from responses_app.models import Image, Item, Lease, Response, StoredRequest
from responses_app.store.log.endings import ENDING_COLUMNS, end_logs
from responses_app.store.log.openings import OPEN_SQL, RESPONSE_COLUMNS, open_logs
from responses_app.store.log.records import Append, Ending, RequestRecord, ResponseLog
from responses_app.store.log.token_log import decode_tokens
from tests.support.store.log_records import NOW, USAGE, log

# Columns of a response with a value in the statement itself.
CONSTANT = {"tools", "log_form"}
TEXT = 'quote" back\\slash \\N NUL\x00 tab\t ünïcödé 🦕 \u2028'


def with_items(uid: str, count: int) -> ResponseLog:
    """Make a log with `count` input items and a request."""
    one = log(uid)
    one.input = [{"id": f"msg_{uid}_{n}", "type": "message", "content": TEXT} for n in range(count)]
    one.request, one.worker = RequestRecord('{"a":1}', [7, 200_000], "m", -1, b"\x00secret"), uuid4()
    return one


class OpeningsTest(TestCase):
    """Against the real database."""

    def test_every_column_without_a_default_is_inserted(self) -> None:
        columns = {field.column for field in Response._meta.concrete_fields if not field.null and not field.primary_key}
        self.assertLessEqual(columns - CONSTANT, set(RESPONSE_COLUMNS))
        self.assertLessEqual({*RESPONSE_COLUMNS, *ENDING_COLUMNS}, {field.column for field in Response._meta.concrete_fields})

    def test_rows_are_those_of_the_log(self) -> None:
        one = with_items("resp_1", 2)
        earlier = Item.objects.create(uid="msg_earlier", type="message", body="{}")
        one.row.metadata, one.row.history, one.row.request_id = {"k": TEXT.replace("\0", "")}, [3, earlier.pk], "req_1"
        one.images = {("msg_resp_1_1", "https://a.b/c"): b"\x00image"}
        open_logs([Append(one, [], opens=True)])
        stored = Response.objects.get(pk=one.row.pk)
        names = [*RESPONSE_COLUMNS, "ended_at", "tools", "log_form", "input_tokens"]
        self.assertEqual([getattr(stored, name) for name in names], [getattr(one.row, name) for name in names])
        lease, request = Lease.objects.get(pk=stored.pk), StoredRequest.objects.get(pk=stored.pk)
        self.assertEqual((lease.worker, lease.epoch, lease.model, lease.priority), (one.worker, 1, "m", -1))
        self.assertEqual((bytes(lease.secrets or b""), lease.waiting, lease.last_number), (b"\x00secret", False, -1))
        self.assertEqual((request.create_request, decode_tokens(bytes(request.prompt_tokens))), ('{"a":1}', [7, 200_000]))
        image = Image.objects.get()
        self.assertEqual((image.item_id, bytes(image.data)), (one.input_keys[1], b"\x00image"))

    def test_items_of_several_responses_have_ascending_keys_in_their_order(self) -> None:
        logs = [with_items(f"resp_{n}", n) for n in (3, 0, 11)]
        open_logs([Append(one, [], opens=True) for one in logs])
        ending = Ending("completed", NOW, [{"id": f"out_{n}", "type": "message"} for n in range(12)], USAGE)
        end_logs([Append(one, [], ending=ending) for one in logs])
        self.assertEqual([one.row.pk for one in logs], sorted(one.row.pk for one in logs))
        for one in logs:
            uids = [item["id"] for item in (*one.input, *ending.items)]
            stored = Item.objects.filter(response=one.row.pk).order_by("pk")
            self.assertEqual(list(stored.values_list("uid", flat=True)), uids)
            self.assertEqual(list(stored.values_list("pk", flat=True)), [*one.input_keys, *one.output_keys])
        self.assertFalse(Lease.objects.exists())

    def test_the_statement_is_prepared_once(self) -> None:
        for number in range(3):
            open_logs([Append(with_items(f"resp_{number}", 1), [], opens=True)])
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE %s", [OPEN_SQL[:40] + "%"])
            self.assertEqual(cursor.fetchone(), (1,))
