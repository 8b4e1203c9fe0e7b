"""Counted parts in memory: the same figures as without, whatever happens to the rows, and few rows are counted again."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from unittest import mock

from django.db import transaction
from django.utils import timezone

from responses_app.models import ApiKey, Response
from responses_app.web.overview import figures
from responses_app.web.overview.figures import FIGURES, CountedPart, Overview, count
from responses_app.web.overview.page import numbers
from responses_app.web.overview.part_cache import PartCache
from responses_app.web.overview.time_range import TimeRange
from responses_app.web.responses.filters import ListFilters
from tests.support.web.overview_responses import DAY, RANGE_START, six_hundred, stored
from tests.support.web.page_case import WebCase

NOW = RANGE_START + timedelta(days=1)


def described(overview: Overview) -> list[Any]:
    """Return all figures of an overview in a form that can be compared."""
    groups = (overview.models, overview.keys, overview.projects, overview.api_formats)
    return [
        numbers(overview.total),
        overview.total.cached_tokens,
        [numbers(slot) for slot in overview.slots],
        *({name: numbers(one) for name, one in group.items()} for group in groups),
    ]


class CachedPartsTest(WebCase):
    """Six hundred responses of a day, one of which runs, with an empty cache."""

    key: ApiKey
    running: str

    @classmethod
    def setUpTestData(cls) -> None:
        cls.key, _ = ApiKey.make("of p", project="p")
        rows = six_hundred(cls.key)
        rows[300].ended_at, rows[300].status = None, "in_progress"
        Response.objects.bulk_create(rows)
        cls.running = rows[300].uid

    def setUp(self) -> None:
        super().setUp()
        self.cache = PartCache[CountedPart](figures.MAX_CACHE_BYTES)
        self.counted: list[int] = []
        original = figures._fetch

        def fetch(sql: str, *args: Any) -> list[tuple[Any, ...]]:
            rows = original(sql, *args)
            if sql is FIGURES:
                self.counted += [row[6] for row in rows]
            return rows

        cells = PartCache[Any](figures.MAX_CELL_CACHE_BYTES)
        for name, value in (("_cache", self.cache), ("_cell_cache", cells), ("_fetch", fetch)):
            patch = mock.patch.object(figures, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def check(self, time_range: TimeRange = DAY, **filters: Any) -> int:
        """Compare the figures with those of all rows counted anew. Return the number of rows that were counted before that."""
        of_any_time = Response.objects.filter(**filters)
        rows = ListFilters(since=time_range.since).indexed(of_any_time)
        cached = count(rows, time_range, of_any_time)
        counted = sum(self.counted)
        self.assertEqual(described(cached), described(count(rows, time_range)))
        self.counted.clear()
        return counted

    def rows_of_slot(self, slot: int) -> int:
        """Return the number of stored responses of a slot."""
        return Response.objects.filter(created_at__gte=DAY.start_of(slot), created_at__lt=DAY.start_of(slot + 1)).count()

    def test_rows_that_did_not_change_are_not_counted_again(self) -> None:
        self.assertEqual(self.check(), 600)
        self.assertEqual(self.check(), 0)

    def test_a_part_of_which_a_row_changes_is_counted_again(self) -> None:
        self.check()
        running = Response.objects.filter(uid=self.running)
        slot = next(slot for slot in range(DAY.slots) if running.get().created_at < DAY.start_of(slot + 1))
        ended_at = running.get().created_at + timedelta(hours=2)

        def add(number: int) -> Response:
            row = stored(number, created_at=DAY.start_of(slot))
            row.save()
            return row

        changes: Sequence[Callable[[], object]] = (
            lambda: running.update(status="completed", ended_at=ended_at, output_tokens=77),
            lambda: running.update(status="failed"),
            lambda: running.update(time_to_first_token_ms=1),
            lambda: running.update(model="renamed", project="q", key=None),
            lambda: add(601),
            lambda: running.delete(),
            # As many rows as before.
            lambda: (Response.objects.get(uid="resp_601").delete(), add(602)),
        )
        for change in changes:
            # A transaction within that of the test has a number of its own.
            with transaction.atomic():
                change()
            self.assertEqual(self.check(), self.rows_of_slot(slot))
            self.assertEqual(self.check(), 0)

    def test_figures_of_a_deleted_key_are_those_without_a_key(self) -> None:
        self.check()
        with transaction.atomic():
            self.key.delete()
        of_key = Response.objects.filter(key__isnull=False)
        self.assertFalse(of_key.exists())
        self.assertEqual(self.check(), 600)

    def test_a_part_whose_rows_are_all_deleted_is_empty(self) -> None:
        self.check()
        with transaction.atomic():
            Response.objects.filter(created_at__gte=DAY.start_of(3), created_at__lt=DAY.start_of(4)).delete()
        self.assertEqual(self.check(), 0)
        with transaction.atomic():
            Response.objects.all().delete()
        self.assertEqual(self.check(), 0)

    def test_other_filters_and_time_ranges_have_parts_of_their_own(self) -> None:
        for filters in (
            {},
            {"project": "p"},
            {"project": "q"},
            {"project": "q", "model": "small"},
            {"project__in": ["p", "q"]},
        ):
            self.assertEqual(self.check(**filters), Response.objects.filter(**filters).count())
        self.assertEqual(self.check(TimeRange.until(NOW, "7d", timedelta(hours=6), 28)), 600)

    def test_later_a_part_at_each_end_is_counted_again(self) -> None:
        self.check()
        most = max(self.rows_of_slot(slot) for slot in range(DAY.slots))
        for minutes in (1, 30, 61, 600, 1400):
            later = TimeRange.until(NOW + timedelta(minutes=minutes), "24h", timedelta(hours=1), 24)
            self.assertLessEqual(self.check(later), 2 * most)

    def test_the_newest_responses_alone_are_counted(self) -> None:
        for bound in (250, 251, 599, 600):
            with self.subTest(bound=bound), mock.patch.object(figures, "MAX_COUNTED", bound):
                self.check()
                self.assertEqual(self.check(), 0)
                with transaction.atomic():
                    stored(700 + bound, created_at=NOW - timedelta(seconds=1)).save()
                self.check()
                self.assertEqual(count(Response.objects.all(), DAY).total.requests, bound)

    def test_memory_is_bounded(self) -> None:
        parts = PartCache[str](100)
        for name, size in (("a", 40), ("b", 40), ("a", 60)):
            parts.put(name, name * size, size)
        self.assertEqual(parts.get("b"), "b" * 40)
        parts.put("c", "c", 1)
        self.assertIsNone(parts.get("a"))
        self.assertEqual([parts.get(name) for name in "bc"], ["b" * 40, "c"])
        parts.put("d", "d", 101)
        self.assertEqual([parts.get(name) for name in "bcd"], [None] * 3)
        parts.put("e", "e", 100)
        self.assertEqual(parts.get("e"), "e")
        # A part is as large as its rows and codes.
        small, large = (
            CountedPart.of_rows((), [(0, "m", None, "p", "", 1, 9, 0, 1, 1, 1, codes, None, codes)])
            for codes in (b"", b"ab" * 9)
        )
        self.assertEqual(large.size - small.size, 36)

    def test_figures_are_right_without_room_for_all_parts(self) -> None:
        with mock.patch.object(figures, "_cache", PartCache[CountedPart](figures.FIGURES_BYTES * 5)):
            for _ in range(2):
                self.assertGreater(self.check(), 0)

    def test_slots_begin_at_full_hours_and_cover_the_range(self) -> None:
        for end, slots in ((NOW.replace(minute=0, second=0), 24), (NOW.replace(minute=0, second=1), 25)):
            day = TimeRange.until(end, "24h", timedelta(hours=1), 24)
            starts = [day.start_of(slot) for slot in range(slots + 1)]
            self.assertEqual((day.slots, starts[0]), (slots, end - timedelta(days=1)))
            self.assertEqual({(start.minute, start.second) for start in starts[1:]}, {(0, 0)})
            self.assertLess(starts[-2], end)
            self.assertGreaterEqual(starts[-1], end)

    def test_numbers_of_the_first_and_the_last_slot_lead_to_their_responses(self) -> None:
        with mock.patch.object(timezone, "now", return_value=NOW - timedelta(seconds=1)):
            for _ in range(2):
                page = self.page("/?range=24h")
                self.assertIn('class="large" href="/responses?since=24h">600<', page)
                slots: Sequence[tuple[str, str]] = re.findall(
                    r'<a href="([^"]*)" tabindex="-1"><title>[^<]*: (\d+) requests', page
                )
                self.assertEqual(sum(int(number) for _, number in slots), 600)
                for link, number in (slots[0], slots[-1]):
                    self.assertIn(f"{number} response", self.page(html.unescape(link)))
