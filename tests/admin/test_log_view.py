"""The admin shows a log page by page, sealed or not, with its times."""

from __future__ import annotations

import re

from django.contrib.auth.models import User
from django.test import TestCase

from responses_app.models import Response
from responses_app.store.log.archive import archive_log
from responses_app.store.log.retention import prune
from tests.support.store.log_records import NOW
from tests.support.store.stored_logs import log_frames, stored_response


class LogTest(TestCase):
    """With a superuser, against the real database."""

    def setUp(self) -> None:
        self.client.force_login(User.objects.create_superuser("root", "", "x"))
        self.frames = log_frames(2500)

    def url(self, row: Response, after: int | None = None) -> str:
        """The address of a page of the log."""
        return f"/admin/responses_app/response/{row.pk}/log/" + ("" if after is None else f"?after={after}")

    def lines(self, url: str) -> list[tuple[int, int, int, str]]:
        """Number, time, difference and type of each line."""
        page = self.client.get(url).content.decode()
        found = re.findall(
            r'field-number"><a[^>]*>(\d+)</a></th><td class="field-ms">(\d+)</td><td class="field-later">(\d+)</td>'
            r'<td class="field-type">([^<]*)<',
            page,
        )
        return [(int(number), int(ms), int(later), kind) for number, ms, later, kind in found]

    def test_log_is_the_same_before_and_after_archiving(self) -> None:
        row = stored_response(self.frames)
        places = (None, 0, 1, 99, 950, 998, 999, 1000, len(self.frames) - 2, len(self.frames))
        before = [self.lines(self.url(row, after)) for after in places]
        archive_log(row.pk)
        self.assertEqual([self.lines(self.url(row, after)) for after in places], before)
        for after, lines in zip(places, before, strict=True):
            with self.subTest(after=after):
                begin = 0 if after is None else after + 1
                wanted = self.frames[begin : begin + 100]
                self.assertEqual(lines, [(one.number, one.ms, 17 if one.number else 0, one.type) for one in wanted])

    def test_page_links_lead_through_the_whole_log(self) -> None:
        row = stored_response(self.frames)
        archive_log(row.pk)
        seen, url = [], self.url(row)
        while url:
            seen += [number for number, *_ in self.lines(url)]
            following = re.search(r'href="(\?after=\d+)">Next', self.client.get(url).content.decode())
            url = self.url(row) + following[1] if following else ""
        self.assertEqual(seen, list(range(len(self.frames))))
        page = self.client.get(self.url(row, 199)).content.decode()
        self.assertIn('"?after=99">Previous', page)
        last = re.search(r'href="(\?after=\d+)">Last', page)
        assert last is not None
        self.assertEqual(self.lines(self.url(row) + last[1])[-1][0], len(self.frames) - 1)

    def test_each_event_can_be_read_in_full(self) -> None:
        row = stored_response(self.frames)
        for _ in range(2):
            page = self.client.get(f"{self.url(row)}5/").content.decode()
            self.assertIn("sequence_number&quot;: 5", page)
            for number in (len(self.frames), 2**31, 2**40):
                with self.subTest(number=number):
                    self.assertEqual(self.client.get(f"{self.url(row)}{number}/").status_code, 404)
            archive_log(row.pk)

    def test_a_log_without_its_deltas_shows_what_it_has(self) -> None:
        row = stored_response(self.frames, ended_at=NOW)
        archive_log(row.pk)
        sum(prune("deltas", NOW.replace(year=NOW.year + 1)))
        shown = [number for number, *_ in self.lines(self.url(row))]
        self.assertEqual(shown, [one.number for one in self.frames if not one.type.endswith(".delta")])
        self.assertIn("without deltas", self.client.get(self.url(row)).content.decode())
        self.assertEqual(self.client.get(f"{self.url(row)}7/").status_code, 404)

    def test_a_log_that_has_not_begun_or_is_not_there(self) -> None:
        row = stored_response([])
        for after in (None, 0, 5):
            with self.subTest(after=after):
                self.assertEqual(self.lines(self.url(row, after)), [])
        self.assertEqual(self.client.get(f"{self.url(row)}?after=x").status_code, 200)
        self.assertEqual(self.client.get("/admin/responses_app/response/0/log/").status_code, 404)
        page = self.client.get(f"/admin/responses_app/response/{row.pk}/change/").content.decode()
        self.assertIn("No events yet", page)

    def test_log_needs_permission_to_view_responses(self) -> None:
        row = stored_response(self.frames[:3])
        for account, status in ((None, 302), (User.objects.create_user("staff", is_staff=True), 403)):
            with self.subTest(account=str(account)):
                self.client.logout()
                if account is not None:
                    self.client.force_login(account)
                for url in (self.url(row), f"{self.url(row)}0/"):
                    with self.subTest(url=url):
                        self.assertEqual(self.client.get(url).status_code, status)
