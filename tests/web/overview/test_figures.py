"""Figures of the overview: against values computed from the stored rows, and within the permissions of a user."""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from datetime import timedelta
from unittest import mock
from urllib.parse import parse_qsl

from django.contrib.auth.models import User
from django.utils import timezone

from responses_app.models import ApiKey, Membership, RefusedRequest, Response
from responses_app.web.overview.charts import chart, scale_end
from responses_app.web.overview.figures import ResponseFigures, count
from responses_app.web.overview.page import cells
from responses_app.web.overview.percentiles import PERCENTS, STEPS, Distribution
from responses_app.web.responses.rows import ResponseStats
from tests.support.web.overview_responses import DAY, RANGE_START, six_hundred, stored
from tests.support.web.page_case import WebCase
from tests.support.web.response_ids import UID


def nearest_rank(values: list[float]) -> list[float]:
    """Return the percentiles of `PERCENTS`, each a value of the list."""
    ordered = sorted(values)
    return [ordered[math.ceil(len(ordered) * percent / 100) - 1] for percent in PERCENTS]


class FiguresTest(WebCase):
    """Six hundred responses of a day."""

    key: ApiKey

    @classmethod
    def setUpTestData(cls) -> None:
        cls.key, _ = ApiKey.make("of p", project="p")
        rows = six_hundred(cls.key)
        rows.append(
            stored(601, created_at=RANGE_START + timedelta(hours=3), status="in_progress", ended_at=None, output_tokens=None)
        )
        # As in a real table, the keys grow with the time.
        Response.objects.bulk_create(sorted(rows, key=lambda row: row.created_at))

    def test_percentiles_are_those_of_the_rows_within_one_percent(self) -> None:
        rows = list(Response.objects.all())
        overview = count(Response.objects.all(), DAY)
        groups = [
            (overview.total, rows),
            *((figures, [row for row in rows if row.model == name]) for name, figures in overview.models.items()),
            *((figures, [row for row in rows if row.project == name]) for name, figures in overview.projects.items()),
            *((figures, [row for row in rows if row.api_format == name]) for name, figures in overview.api_formats.items()),
            *((figures, [row for row in rows if row.key_id == pk]) for pk, figures in overview.keys.items()),
            *(
                (figures, [row for row in rows if DAY.start_of(slot) <= row.created_at < DAY.start_of(slot + 1)])
                for slot, figures in enumerate(overview.slots)
            ),
        ]
        self.assertEqual(len(groups), 1 + 2 + 2 + 2 + 2 + DAY.slots)
        for figures, of_group in groups:
            stats = [ResponseStats(row) for row in of_group]
            self.assertEqual(figures.requests, len(of_group))
            self.assertEqual(figures.failed, sum(row.status == "failed" for row in of_group))
            self.assertEqual(figures.output_tokens, sum(row.output_tokens or 0 for row in of_group))
            for shown, values in (
                (figures.first, [one.first_s for one in stats]),
                (figures.rate, [one.rate for one in stats]),
                (figures.total, [one.total_s for one in stats]),
            ):
                expected = nearest_rank([1000 * value for value in values if value is not None])
                for value, known in zip(shown.percentiles, expected, strict=True):
                    assert value is not None
                    self.assertAlmostEqual(value / max(known, 1), 1, delta=0.0101)

    def test_percentiles_of_few_and_no_values(self) -> None:
        self.assertEqual(Distribution.of_codes([]).percentiles, [None, None, None])
        codes = [round(STEPS * math.log(value)).to_bytes(2, "big") for value in range(1, 101)]
        values = Distribution.of_codes(codes).percentiles
        for value, known in zip(values, (50, 95, 99), strict=True):
            assert value is not None
            self.assertAlmostEqual(value / known, 1, delta=0.0101)

    def test_slowest_response_is_in_the_list_of_a_percentile(self) -> None:
        for tenths in range(1_000, 7_000):
            duration_ms = tenths / 10
            total = Distribution.of_codes([round(STEPS * math.log(duration_ms)).to_bytes(2, "big")])
            filters = dict(parse_qsl(cells(ResponseFigures(total=total), {})[-1].query))
            self.assertLessEqual(float(filters["seconds"]) * 1000, duration_ms)

    def test_a_slot_without_values_interrupts_a_line(self) -> None:
        shown = Response.objects.exclude(created_at__range=(DAY.start_of(5), DAY.start_of(6)))
        line = next(shape for shape in chart(count(shown, DAY), DAY, [0] * DAY.slots).shapes if shape.name == "p50")
        self.assertEqual(line.path.count("M"), 2)

    def test_scales_end_at_a_round_number(self) -> None:
        for peak, end in ((0, 0), (0.07, 0.08), (1, 1), (3, 4), (56, 60), (99, 100), (10_001, 20_000)):
            self.assertAlmostEqual(scale_end(peak), end)
        scales = chart(count(Response.objects.all(), DAY), DAY, [0] * DAY.slots).scales
        self.assertEqual([len(scale) for scale in scales], [3] * 5)
        self.assertEqual({scale[-1] for scale in scales}, {"0"})
        nothing = chart(count(Response.objects.none(), DAY), DAY, [0] * DAY.slots).scales
        self.assertEqual(nothing, [["2", "1", "0"]] * 2 + [[]] * 3)

    def test_running_and_failures_stand_above_the_groups_and_a_single_row_of_all_is_left_out(self) -> None:
        page = self.page("/?range=30d")
        places = [
            page.index(text) for text in ("Table of these charts", "Running now", "Last failures", "<h2>Models", "<h2>Keys")
        ]
        self.assertEqual(places, sorted(places))
        page = self.page("/?range=30d&model=small")
        self.assertNotIn("<h2>Models", page)
        self.assertIn("<h2>Keys", page)

    def test_numbers_lead_to_their_responses(self) -> None:
        page = self.page("/?range=30d")
        for pattern, expected in (
            (r'class="large" href="(/responses\?since=30d)">601<', 601),
            (r'class="failed" href="(/responses\?[^"]*status=failed)">', Response.objects.filter(status="failed").count()),
            (r'<a href="(/responses\?since=30d&amp;model=small[^"]*)">\d', Response.objects.filter(model="small").count()),
            (
                r'<a href="(/responses\?since=30d&amp;format=messages)">\d',
                Response.objects.filter(api_format="messages").count(),
            ),
            (r'<a href="(/responses\?since=30d&amp;format=responses)">\d', Response.objects.filter(api_format="").count()),
            (r'<a href="(/responses\?since=30d&amp;key=[^"]*)">\d', Response.objects.filter(key=self.key).count()),
            (r'<a href="(/responses\?since=30d&amp;project=q[^"]*)">\d', Response.objects.filter(project="q").count()),
        ):
            match = re.search(pattern, page)
            assert match, pattern
            self.assertIn(f"{expected} responses", self.page(html.unescape(match[1])))
        slot = re.search(r'<a href="(/responses\?since=[^"]*until=[^"]*)" tabindex="-1"><title>[^<]*: (\d+) requests', page)
        assert slot
        self.assertIn(f"{slot[2]} response", self.page(html.unescape(slot[1])))

    def test_the_last_part_of_the_time_axis_leads_to_the_responses_of_this_second(self) -> None:
        now = timezone.now().replace(microsecond=700_000)
        uid = f"resp_{7:048x}"
        Response.objects.create(uid=uid, thread=uid, project="p", model="newest", created_at=now - timedelta(milliseconds=100))
        with mock.patch("django.utils.timezone.now", return_value=now):
            page = self.page("/?range=1h&model=newest")
        match = re.search(r'<tr><th scope="row"><a href="(/responses\?[^"]*until=[^"]*)">', page)
        assert match is not None
        self.assertEqual(UID.findall(self.page(html.unescape(match[1]))), [uid])

    def test_all_that_run_are_those_in_progress_and_those_queued(self) -> None:
        Response.objects.filter(model="small", status="completed").update(status="queued", ended_at=None)
        running = Response.objects.filter(ended_at=None)
        self.assertEqual(set(running.values_list("status", flat=True)), {"queued", "in_progress"})
        match = re.search(r'href="(/responses\?[^"]*)">All that run</a>', self.page("/"))
        assert match is not None
        self.assertIn(f">{running.count()} responses<", self.page(html.unescape(match[1])))

    def test_the_address_narrows_the_page(self) -> None:
        for query, shown in (
            ("model=small", Response.objects.filter(model="small")),
            (f"key={self.key.pk}", Response.objects.filter(key=self.key)),
            ("project=q", Response.objects.filter(project="q")),
            ("model=nobody", Response.objects.none()),
            # Formats without and with an index, and without and with one of a project.
            ("format=responses", Response.objects.filter(api_format="")),
            ("format=messages", Response.objects.filter(api_format="messages")),
            ("format=messages&project=q", Response.objects.filter(api_format="messages", project="q")),
            ("format=chat_completions", Response.objects.none()),
        ):
            page = self.page(f"/?range=7d&{query}")
            self.assertIn("Only ", page)
            number = shown.count()
            self.assertIn(f'">{number}</a></dd>' if number else "No responses in the last 7 days", page)
        self.assertIn("No responses in the last", self.page("/?range=odd&model=%00&key=x&project=%E2%80%AE"))

    def test_the_table_of_keys_has_their_refused_requests(self) -> None:
        other, _ = ApiKey.make("all refused", project="p")
        for key, number in ((self.key, 4), (other, 7), (None, 9)):
            RefusedRequest.objects.create(
                created_at=DAY.start_of(4), project="p", path="/v1/x", status=400, count=number, key=key
            )
        page = self.page("/")
        refused = re.findall(r'href="(/responses\?[^"]*)">([47])</a></td></tr>', page)
        self.assertEqual([number for _, number in refused], ["4", "7"])
        self.assertIn(f"key={other.pk}", refused[1][0])
        self.assertIn("status=refused", refused[1][0])

    def test_the_table_of_keys_counts_the_requests_without_a_key(self) -> None:
        keyless = Response.objects.filter(key=None).count()
        self.assertIn(f"And {keyless} requests without a key, from the browser or of a deleted key.", self.page("/?range=7d"))
        self.assertNotIn("without a key", self.page(f"/?range=7d&key={self.key.pk}"))

    def test_an_api_format_narrows_running_and_failed_responses_and_leaves_out_refused_ones(self) -> None:
        RefusedRequest.objects.create(created_at=DAY.start_of(4), project="p", path="/v1/responses", status=429, count=3)
        row = re.search(r'<th scope="row"><a href="\?([^"]*format=messages[^"]*)">Messages</a>', self.page("/?range=7d"))
        assert row
        Response.objects.filter(ended_at=None).update(api_format="messages")
        page = self.page(f"/?{html.unescape(row[1])}")
        self.assertIn("Only API format <code>Messages</code>", page)
        self.assertEqual(page.count("In progress"), 1)
        self.assertNotIn("refused<", page)
        self.assertEqual(self.page("/?range=7d&format=responses").count("In progress"), 0)
        self.assertNotIn("Only ", self.page("/?range=7d&format=odd"))

    def test_refused_requests_are_counted_beside_the_others(self) -> None:
        for project, number in (("p", 3), ("q", 2), ("", 5)):
            RefusedRequest.objects.create(
                created_at=DAY.start_of(4) + timedelta(minutes=1),
                project=project,
                path="/v1/responses",
                status=429,
                count=number,
            )
        page = self.page("/?range=7d")
        match = re.search(r'class="refused" href="(/responses\?[^"]*)">10 refused<', page)
        assert match
        self.assertIn("status=refused", match[1])
        self.page(html.unescape(match[1]))
        self.assertIn(", 10 refused,", page)
        self.assertIn(">2 refused<", self.page("/?range=7d&project=q"))
        self.assertNotIn('class="refused" href', self.page("/?range=7d&model=small"))
        ada = User.objects.create_user("ada")
        Membership.objects.create(user=ada, project="p")
        self.client.force_login(ada)
        self.assertIn(">3 refused<", self.page("/?range=7d"))

    def test_refused_requests_that_are_left_out_are_named(self) -> None:
        for minute in range(5):
            RefusedRequest.objects.create(
                created_at=DAY.start_of(4) + timedelta(minutes=minute),
                project="p",
                path="/v1/responses",
                status=429,
                count=10,
                key=self.key,
            )
        for bound, total, is_partial in ((6, 50, False), (5, 50, True), (3, 30, True)):
            with self.subTest(bound=bound), mock.patch("responses_app.web.overview.figures.MAX_REFUSED", bound):
                page = self.page("/?range=7d")
                # In total, of the time and of the key.
                self.assertEqual(page.count(f'status=refused">{total}'), 3)
                self.assertEqual(f"Of the latest {total} refused requests." in page, is_partial)

    def test_people_see_the_figures_of_their_projects_alone(self) -> None:
        ada = User.objects.create_user("ada")
        self.client.force_login(ada)
        self.assertIn("You’re not a member of any project", self.page("/?range=30d"))
        Membership.objects.create(user=ada, project="q")
        page = self.page("/?range=30d")
        self.assertIn(f'">{Response.objects.filter(project="q").count()}</a></dd>', page)
        self.assertNotIn("of p", page)
        running = Response.objects.filter(ended_at=None).update(project="q")
        self.assertEqual(running, 1)
        self.assertEqual(self.page("/").count("In progress"), 1)
        Response.objects.filter(ended_at=None).update(project="p")
        self.assertEqual(self.page("/").count("In progress"), 0)

    def test_failures_of_a_person_are_listed_newest_first(self) -> None:
        newest = Response.objects.filter(status="failed").order_by("-pk").first()
        assert newest
        Response.objects.filter(pk=newest.pk).update(error_code="<odd>")
        page = self.page("/?range=30d")
        self.assertIn("&lt;odd&gt;", page)
        failures = page[page.index("Last failures") :]
        match = re.search(r'href="/responses/(resp_\d+)"', failures)
        assert match
        self.assertEqual(match[1], newest.uid)
        equal = Counter(Response.objects.filter(status="failed", error_code="").values_list("model", flat=True))
        self.assertCountEqual(re.findall(r"× (\d+)", failures), map(str, equal.values()))
        self.assertEqual(UID.findall(page), [])
