"""Packed events: they come back whole, and no process packs while an earlier version runs."""

from __future__ import annotations

from unittest import mock
from uuid import uuid4

import orjson
import pytest
from django.db import IntegrityError, connection, transaction
from django.test import TestCase
from hypothesis import given
from hypothesis import strategies as st
from zstandard import ZstdCompressor

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.cluster import leases
from responses_app.store.log import archive, page_codec, reader
from responses_app.store.log.event_index import event_headers, events_by_number
from responses_app.store.log.group_commit import was_committed
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import (
    EVENT_FORM,
    MAX_PACKED_BYTES,
    NO_DATA,
    event_rows,
    pack_events,
    packing,
    unpack_line,
    unpack_row,
)
from responses_app.store.log.rows.event_copy import copy_events
from tests.support.store.log_records import frame, log
from tests.support.store.stored_logs import log_frames

# The statement of the version before, whose rows get the default of the database.
OLD_HEARTBEAT_SQL = """
INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at, reads_packed, reads_shared)
VALUES (%s, 'old', ARRAY['m'], clock_timestamp() - make_interval(secs => %s), TRUE, TRUE)
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(
    number=st.integers(0, 2**31 - 10),
    contents=st.lists(st.dictionaries(st.text(), JSON), min_size=1, max_size=4),
    times=st.lists(st.integers(0, 2**31 - 1), min_size=4, max_size=4),
    has_opening=st.booleans(),
)
@pytest.mark.slow
def test_events_come_back_whole(number: int, contents: list[dict[str, object]], times: list[int], has_opening: bool) -> None:
    kinds = ("response.output_text.delta", "response.completed")
    events = []
    for place, (fields, ms) in enumerate(zip(contents, times, strict=False)):
        kind = kinds[place % 2]
        opening = {"type": kind, "sequence_number": number + place} if has_opening else {}
        events.append(EventFrame(number + place, kind, orjson.dumps(opening | fields), ms))
    packed = pack_events(events)
    assert unpack_row(number, "", packed, events[0].ms) == events
    assert unpack_line(b"%d  %b" % (number, packed)) == [one._replace(ms=one.ms - events[0].ms) for one in events]
    # JSON itself is a stored form too.
    assert unpack_row(number, kinds[0], events[0].data, events[0].ms) == events[:1]


@given(digits=st.binary(min_size=24, max_size=24), text=st.text())
def test_ids_come_back_whole(digits: bytes, text: str) -> None:
    item, other = f"msg_{digits.hex()}", f"rs_{bytes(reversed(digits)).hex()}"
    events = [
        frame(number, item_id=one, delta=f"{text} {item} {digits.hex()}") for number, one in enumerate((item, other, item))
    ]
    packed = pack_events(events)
    assert unpack_row(0, "", packed, events[0].ms) == events


def test_id_takes_its_bytes() -> None:
    sizes = [len(pack_events([frame(5, item_id=one, delta=" the castle")])) for one in ("msg_", f"msg_{'01a2b3c4d5e6' * 4}")]
    assert sizes[1] - sizes[0] <= 26


def test_rows_of_the_version_before_are_read() -> None:
    dictionary = page_codec.load_dictionary()
    one = frame(7, delta=" the castle")
    packed = EVENT_FORM + ZstdCompressor(level=3, dict_data=dictionary, write_dict_id=False).compress(
        page_codec.cut_opening(one.type, one.number, one.data)
    )
    assert unpack_row(7, one.type, packed, one.ms) == [one]
    assert unpack_line(b"7 %b %b" % (one.type.encode(), packed))[0].data == one.data


def test_long_json_is_left_to_postgres() -> None:
    packing.allowed = True
    half, long = frame(0, delta="x" * (MAX_PACKED_BYTES // 2)), frame(0, delta="x" * MAX_PACKED_BYTES)
    events = [one._replace(number=number) for number, one in enumerate((frame(0), half, half, long, frame(0), frame(0)))]
    rows = event_rows(Append(log(), events, tokens=b"t"))
    assert [(row.number, row.events, row.packed is not None) for row in rows] == [
        (0, 2, True),
        (2, None, True),
        (3, None, False),
        (4, 2, True),
    ]
    assert [row.tokens for row in rows] == [None, None, None, b"t"]


class PackedRowsTest(TestCase):
    """Every reader of rows finds the same events as in rows of JSON."""

    def setUp(self) -> None:
        packing.allowed = True
        self.frames = log_frames(7)
        one = log()
        one.row.save()
        # Rows of 3, 3 and the other events.
        self.appends = [Append(one, self.frames[:3]), Append(one, self.frames[3:6]), Append(one, self.frames[6:])]
        for append in self.appends:
            copy_events([append])
        self.pk = one.row.pk

    def test_readers(self) -> None:
        self.assertEqual(Event.objects.exclude(packed=None).count(), 3)
        for after in range(-1, len(self.frames)):
            with self.subTest(after=after):
                self.assertEqual(reader.rows(self.pk, after), self.frames[after + 1 :])
                headers = [(one.number, one.type, one.ms) for one in self.frames[after + 1 :]]
                self.assertEqual([tuple(one) for one in event_headers(self.pk, after)], headers)
        self.assertEqual(events_by_number(self.pk, [2, 5]), {number: self.frames[number] for number in (2, 5)})
        self.assertEqual(events_by_number(self.pk, [4, 99]), {4: self.frames[4]})
        self.assertEqual(reader.last_number(self.pk), len(self.frames) - 1)
        annotated = reader.with_last_event(Response.objects.filter(pk=self.pk)).get()
        self.assertEqual(reader.last_event(annotated), self.frames[-1].data)

    def test_commit_without_a_reply_is_found(self) -> None:
        for append in self.appends:
            self.assertTrue(was_committed([append]))
        self.appends[1].frames[-1] = self.appends[1].frames[-1]._replace(data=b"{}")
        self.assertFalse(was_committed([self.appends[1]]))

    def test_replaced_writer_is_refused(self) -> None:
        last = len(self.frames) - 1
        # Other beginnings than the one behind the last event: within a row, at a row, and behind a gap.
        for number in (1, 3, 4, 5, last, last + 2):
            for size in (1, 2, 5):
                with self.subTest(number=number, size=size), self.assertRaises(IntegrityError), transaction.atomic():
                    copy_events([Append(self.appends[0].log, [frame(number + place) for place in range(size)])])
        copy_events([Append(self.appends[0].log, [frame(last + 1)])])

    def test_archive(self) -> None:
        Response.objects.filter(pk=self.pk).update(ended_at="2026-01-01T00:00:00Z")
        self.assertEqual(archive.archive_log(self.pk), len(self.frames))
        self.assertEqual(Response.objects.get(pk=self.pk).log_form, LogForm.PAGES)
        self.assertEqual(reader.read(self.pk), self.frames)

    def test_long_log_is_archived_in_parts(self) -> None:
        Response.objects.filter(pk=self.pk).update(ended_at="2026-01-01T00:00:00Z")
        with mock.patch.object(archive, "ROWS_PER_BATCH", 1):
            self.assertEqual(archive.archive_log(self.pk), len(self.frames))
        self.assertEqual(reader.read(self.pk), self.frames)

    def test_earlier_version_archives_no_packed_event(self) -> None:
        row = Event.objects.earliest("number")
        for data in (NO_DATA, bytes(row.packed or b"")):
            with self.assertRaisesRegex(ValueError, "not JSON on one line"):
                page_codec.pack([EventFrame(row.number, row.type, data)])
        self.assertEqual(row.data.encode(), NO_DATA)
        self.assertFalse(LogPage.objects.exists())


class HeartbeatTest(TestCase):
    """Processes of the version before are told by their rows of workers."""

    def beat(self) -> bool:
        return leases.heartbeat(uuid4(), "new", ["m"])[1]

    def old(self, silent_s: float) -> None:
        with connection.cursor() as cursor:
            cursor.execute(OLD_HEARTBEAT_SQL, [uuid4(), silent_s])

    def test_processes_of_this_version_pack(self) -> None:
        self.assertTrue(self.beat())
        self.assertTrue(self.beat())

    def test_events_stay_json_while_an_earlier_version_runs(self) -> None:
        self.old(silent_s=leases.OLD_VERSION_TIMEOUT_S + 1)
        self.assertTrue(self.beat())
        self.old(silent_s=leases.OLD_VERSION_TIMEOUT_S - 5)
        self.assertFalse(self.beat())
