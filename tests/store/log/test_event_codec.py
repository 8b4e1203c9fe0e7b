"""Packed events: the JSON comes back whole, and no process packs while an earlier version runs."""

from __future__ import annotations

from uuid import uuid4

import orjson
from django.db import connection
from django.test import TestCase
from hypothesis import given
from hypothesis import strategies as st

from responses_app.models import Event, LogForm, LogPage, Response
from responses_app.protocol.encoding import EventFrame
from responses_app.store.cluster import leases
from responses_app.store.log import archive, page_codec, reader
from responses_app.store.log.event_index import events_by_number
from responses_app.store.log.group_commit import was_committed
from responses_app.store.log.records import Append
from responses_app.store.log.rows.event_codec import MAX_PACKED_BYTES, NO_DATA, pack_event, packing, unpack_event
from responses_app.store.log.rows.event_copy import copy_events
from tests.support.store.log_records import frame, log
from tests.support.store.stored_logs import log_frames

# The statement of the version before, whose rows get the default of the database.
OLD_HEARTBEAT_SQL = """
INSERT INTO responses_app_worker (uid, name, served_models, heartbeat_at)
VALUES (%s, 'old', ARRAY['m'], clock_timestamp() - make_interval(secs => %s))
"""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(number=st.integers(0, 2**31 - 1), fields=st.dictionaries(st.text(), JSON), has_opening=st.booleans())
def test_the_json_comes_back_whole(number: int, fields: dict[str, object], has_opening: bool) -> None:
    opening = {"type": "response.output_text.delta", "sequence_number": number} if has_opening else {}
    one = EventFrame(number, "response.output_text.delta", orjson.dumps(opening | fields))
    packing.allowed = True
    packed = pack_event(one)
    assert packed is not None
    assert unpack_event(number, one.type, packed) == one.data
    # JSON itself is a stored form too.
    assert unpack_event(number, one.type, one.data) == one.data


def test_long_json_is_left_to_postgres() -> None:
    packing.allowed = True
    assert pack_event(frame(0, delta="x" * MAX_PACKED_BYTES)) is None
    assert pack_event(frame(0, delta="x" * (MAX_PACKED_BYTES - 500))) is not None


class PackedRowsTest(TestCase):
    """Every reader of rows finds the same events as in rows of JSON."""

    def setUp(self) -> None:
        packing.allowed = True
        self.frames = log_frames(7)
        self.append = Append(log(), self.frames)
        self.append.log.row.save()
        copy_events([self.append])

    def test_readers(self) -> None:
        pk = self.append.log.row.pk
        self.assertEqual(Event.objects.exclude(packed=None).count(), len(self.frames))
        self.assertEqual(reader.rows(pk), self.frames)
        self.assertEqual(events_by_number(pk, [2, 5]), {number: self.frames[number] for number in (2, 5)})
        annotated = reader.with_last_event(Response.objects.filter(pk=pk)).get()
        self.assertEqual(reader.last_event(annotated), self.frames[-1].data)
        self.assertTrue(was_committed([self.append]))
        self.append.frames[-1] = self.frames[-1]._replace(data=b"{}")
        self.assertFalse(was_committed([self.append]))

    def test_archive(self) -> None:
        pk = self.append.log.row.pk
        Response.objects.filter(pk=pk).update(ended_at="2026-01-01T00:00:00Z")
        self.assertEqual(archive.archive_log(pk), len(self.frames))
        self.assertEqual(Response.objects.get(pk=pk).log_form, LogForm.PAGES)
        self.assertEqual(reader.read(pk), self.frames)

    def test_an_earlier_version_archives_no_packed_event(self) -> None:
        row = Event.objects.earliest("number")
        with self.assertRaisesRegex(ValueError, "not JSON on one line"):
            page_codec.pack([EventFrame(row.number, row.type, NO_DATA)])
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
