"""Histogram of the list: each bar counts the responses of the list to which it leads."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils import timezone

from tests.support.web.page_case import WebCase, made
from tests.support.web.response_ids import UID

BAR = re.compile(r'<a href="(\?[^"]*since=[^"]*)"[^>]*><title>(\d+) response')


class HistogramTest(WebCase):
    """Responses at fractions of seconds."""

    def _bars(self, model: str) -> list[tuple[int, list[str]]]:
        """Return for each bar the number that it names, and the ids of its list, oldest first."""
        bars = BAR.findall(self.page(f"/responses?model={model}"))
        return [(int(count), UID.findall(self.page(f"/responses{html.unescape(query)}"))[::-1]) for query, count in bars]

    def test_bars_count_what_their_lists_have(self) -> None:
        begin = datetime(2026, 11, 22, 11, 59, 59, 700_000, UTC)
        for spread_s in (3.0, 59.9, 61.3, 407.0):
            with self.subTest(spread_s=spread_s):
                model = f"over-{spread_s}"
                for number in range(41):
                    uid = f"resp_{round(spread_s):024x}{number:024x}"
                    made(uid, created_at=begin + timedelta(seconds=spread_s * number * number / 1600), model=model)
                bars = self._bars(model)
                self.assertGreater(len(bars), 2)
                self.assertEqual([count for count, _ in bars], [len(uids) for _, uids in bars])
                self.assertEqual(sum(count for count, _ in bars), 41)

    def test_bars_of_the_hour_that_stands_twice_lead_to_their_own_responses(self) -> None:
        # 02:10 and 02:50 in summer time, 02:10 and 02:50 in winter time.
        begin, uids = datetime(2026, 10, 25, tzinfo=UTC), [f"resp_{number:048x}" for number in range(4)]
        for uid, minute in zip(uids, (10, 50, 70, 110), strict=True):
            made(uid, created_at=begin + timedelta(minutes=minute))
        with timezone.override(ZoneInfo("Europe/Berlin")):
            self.assertEqual(self._bars("m"), [(1, [uid]) for uid in uids])
