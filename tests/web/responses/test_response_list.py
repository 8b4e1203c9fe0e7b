"""Response list: filters in the URL, pages by key, permissions, and query plans without full table scans."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime, timedelta
from unittest import mock
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from responses_app.models import ApiKey, Direction, Item, Membership, RefusedRequest, Response, Role
from responses_app.web.responses import filters
from responses_app.web.responses import search as responses_search
from responses_app.web.responses.filters import parse_filters
from responses_app.web.responses.refused import MAX_BESIDE
from responses_app.web.responses.response_list import PAGE_SIZE
from tests.support.store.log_records import NOW, log
from tests.support.web.page_case import LARGEST, WebCase, item, made
from tests.support.web.response_ids import UID

MANY = 20_000
FILL = """
INSERT INTO responses_app_response (uid, project, model, status, background, streamed, stored, thread, history, metadata, error_code,
  created_at, ended_at, input_tokens, cached_tokens, output_tokens, reasoning_tokens, time_to_first_token_ms, tools, log_form)
SELECT 'resp_many_' || n, 'p' || n %% 3, 'm' || n %% 4, CASE WHEN n %% 500 = 0 THEN 'failed' ELSE 'completed' END, false, true, true,
  'resp_many_' || n, '{}', CASE WHEN n %% 100 = 0 THEN '{"user": "ada"}'::jsonb ELSE '{}'::jsonb END, '',
  now() - (%(many)s - n) * interval '1 second', now() - (%(many)s - n) * interval '1 second' + interval '2 seconds',
  10, 0, n %% 100, 0,
  100, CASE WHEN n %% 200 = 0 THEN '{get_weather}'::varchar[] ELSE '{}'::varchar[] END, 0
FROM generate_series(1, %(many)s) AS n
"""
ITEMS = """
INSERT INTO responses_app_item (uid, response_id, project, direction, type, body)
SELECT 'msg_' || id || side, id, project, side, 'message', '{"content":[{"type":"output_text","text":"word ' || uid || '"}]}'
FROM responses_app_response, unnest(ARRAY['input', 'output']) AS side WHERE uid LIKE 'resp_many_%%'
"""


def refuse(count: int, moment: datetime, code: str = "invalid_value") -> None:
    """Store refused requests of the time."""
    rows = [
        RefusedRequest(created_at=moment, project="p", method="POST", path="/v1/responses", status=400, code=code, message="No")
        for _ in range(count)
    ]
    RefusedRequest.objects.bulk_create(rows)


class ListTest(WebCase):
    """Small lists."""

    def shown(self, query: str = "") -> list[str]:
        """The ids in the list, in order."""
        return UID.findall(self.page(f"/responses{query}"))

    def test_api_format_is_shown_and_filtered(self) -> None:
        made("resp_plain")
        made("resp_chat", api_format="chat_completions")
        made("resp_messages", api_format="messages")
        self.assertEqual(self.page("/responses").count('class="format'), 2)
        for name, uid in (("responses", "resp_plain"), ("chat_completions", "resp_chat"), ("messages", "resp_messages")):
            with self.subTest(name=name):
                page = self.page(f"/responses?format={name}")
                self.assertEqual([one for one in ("resp_plain", "resp_chat", "resp_messages") if f'/{one}"' in page], [uid])
        self.assertIn("must be one of responses, chat_completions, messages", self.page("/responses?format=x"))
        self.assertIn('?format=messages">Messages</a>', self.page("/responses/resp_messages"))
        self.assertNotIn("?format=", self.page("/responses/resp_plain"))

    def test_refused_requests_of_the_last_hour_are_named_where_the_list_has_the_latest(self) -> None:
        refuse(2, timezone.now())
        for query, expected in (("", True), ("?model=m", True), ("?until=2026-11-01", False), ("?refused=hide", False)):
            with self.subTest(query=query):
                self.assertEqual("2 refused requests" in self.page(f"/responses{query}"), expected)

    def test_rows_are_newest_first_with_statistics_and_excerpts(self) -> None:
        row = made("resp_a", input_tokens=12, cached_tokens=3)
        item(row, "msg_out", "message", content=[{"type": "output_text", "text": 'A "quoted"\n<b>answer</b>'}])
        made("resp_b")
        self.assertEqual(self.shown(), ["resp_b", "resp_a"])
        page = self.page("/responses")
        self.assertIn("Hi from resp_a", page)
        self.assertIn("A &quot;quoted&quot; &lt;b&gt;answer&lt;/b&gt;", page)
        self.assertIn("<td>12 (3)<td>40<td>0.12<td>21.3<td>", page)
        # The text stands where a sheet at the right leaves it free.
        self.assertLess(page.index("Input → output"), page.index(">Model</th>"))
        self.assertLess(page.index("Hi from resp_a"), page.index("<td>12 (3)"))

    def test_the_answer_of_a_row_has_the_words_of_its_links(self) -> None:
        text = "In [one] line ([Tides](https://tides.example/spring.html)), see [the table](sandbox:/mnt/data/a.csv) and [a page](https://t"
        item(made("resp_a"), "msg_out", "message", content=[{"type": "output_text", "text": text}])
        self.assertIn(">In [one] line (Tides), see the table and a page</span>", self.page("/responses"))

    def test_a_decision_about_a_call_is_the_input_of_its_row(self) -> None:
        for uid, approve in (("resp_a", True), ("resp_d", False)):
            item(made(uid), f"mcpa_{uid}", "mcp_approval_response", Direction.INPUT, approve=approve)
        page = self.page("/responses")
        self.assertIn("<span dir=auto>Approved</span>", page)
        self.assertIn("<span dir=auto>Denied</span>", page)

    def test_each_filter_narrows_it(self) -> None:
        key, _ = ApiKey.make("k", project="p")
        made("resp_old", created_at=NOW - timedelta(days=3), ended_at=NOW - timedelta(days=3))
        made("resp_key", key=key)
        made("resp_failed", status="failed")
        made("resp_model", model="other/model")
        made("resp_tool", tools=["get_weather"])
        made("resp_meta", metadata={"user": "ada", "run": "7"})
        made("resp_slow", ended_at=NOW + timedelta(seconds=60))
        made("resp_late", time_to_first_token_ms=500)
        made("resp_long", output_tokens=4000)
        item(made("resp_said"), "fc_1", "function_call", name="f", arguments='{"city":"Köln \\"x\\""}')
        for query, uid in (
            (f"key={key.pk}", "resp_key"),
            ("status=failed", "resp_failed"),
            ("model=other/model", "resp_model"),
            ("tool=get_weather", "resp_tool"),
            ("meta=user%3Dada", "resp_meta"),
            ("meta=user%3Dada,run=7", "resp_meta"),
            ("seconds=30", "resp_slow"),
            ("first=0.5", "resp_late"),
            ("tokens=1000", "resp_long"),
            ("rate=1000", "resp_long"),
            ("until=2026-11-18", "resp_old"),
            ("since=2026-11-16T00:00&until=2026-11-18T00:00:00Z", "resp_old"),
            ("q=k%C3%B6ln", "resp_said"),
            ("q=from+resp_meta&status=completed", "resp_meta"),
        ):
            with self.subTest(query=query, uid=uid):
                self.assertEqual(self.shown(f"?{query}"), [uid], query)
        self.assertEqual(self.shown("?meta=user%3Dbob"), [])
        self.assertEqual(len(self.shown("?project=p")), 10)

    def test_rate_of_the_filter_is_the_rate_of_the_rows(self) -> None:
        # 40 tokens in 1.88 s behind the first token; 100 per second; unknown with a tool; too short.
        made("resp_plain")
        made("resp_fast", generation_ms=400)
        made("resp_tool", tools=["look"])
        made("resp_short", generation_ms=49)
        self.assertEqual(self.shown("?rate=21.2"), ["resp_fast", "resp_plain"])
        self.assertEqual(self.shown("?rate=100"), ["resp_fast"])
        self.assertEqual(self.shown("?rate=100.1"), [])

    def test_the_largest_come_first_page_by_page(self) -> None:
        for number, tokens in enumerate((5, None, 9, 5, 7, None)):
            made(
                f"resp_{number}",
                output_tokens=tokens,
                time_to_first_token_ms=tokens,
                ended_at=None if tokens is None else NOW + timedelta(seconds=tokens),
            )
        order = ["resp_2", "resp_4", "resp_3", "resp_0", "resp_5", "resp_1"]
        for name in ("tokens", "first", "seconds"):
            with self.subTest(name=name), mock.patch("responses_app.web.responses.response_list.PAGE_SIZE", 2):
                query, pages = f"?sort={name}", []
                while query:
                    pages += self.shown(query)
                    following = re.search(r'href="([^"]+)" rel="next"', self.page(f"/responses{query}"))
                    query = html.unescape(following[1]) if following else ""
                self.assertEqual(pages, order)
        self.assertEqual(self.shown("?sort=tokens&tokens=7"), ["resp_2", "resp_4"])
        page = self.page("/responses?sort=odd")
        self.assertIn("“Sort by” must be one of seconds, first, tokens.", html.unescape(page))
        self.assertIn('aria-sort="descending"', self.page("/responses?sort=first"))

    def test_cursor_of_another_project_tells_nothing_of_its_response(self) -> None:
        for number in range(3):
            made(f"resp_{number}", output_tokens=number)
        foreign = made("resp_foreign", project="q", output_tokens=1)
        viewer = User.objects.create_user("viewer")
        Membership.objects.create(user=viewer, project="p", role=Role.VIEWER)
        self.client.force_login(viewer)
        self.assertEqual(self.shown("?sort=tokens"), ["resp_2", "resp_1", "resp_0"])
        missing = self.shown("?sort=tokens&after=999999999")
        self.assertEqual(self.shown(f"?sort=tokens&after={foreign.pk}"), missing)

    def test_an_answer_that_came_at_once_has_no_rate(self) -> None:
        made("resp_at_once", ended_at=NOW + timedelta(milliseconds=122), time_to_first_token_ms=120, output_tokens=60_000)
        self.assertIn("<td>60,000<td>0.12<td><td>0.12", self.page("/responses"))

    def test_an_invalid_filter_is_reported_and_ignored(self) -> None:
        made()
        page = self.page("/responses?status=odd&since=someday&seconds=fast&meta=x&after=no&key=%00")
        self.assertEqual(page.count('class="bad" role="alert"'), 5)
        self.assertEqual(UID.findall(page), ["resp_1"])
        self.assertEqual(parse_filters(QueryDict("tokens=1.5")).tokens, 1)

    def test_days_are_named_by_words(self) -> None:
        with mock.patch("django.utils.timezone.now", return_value=NOW):
            selected = parse_filters(QueryDict("since=Yesterday&until=today"))
        midnight = timezone.localtime(NOW).replace(hour=0, minute=0, second=0, microsecond=0)
        self.assertEqual((selected.since, selected.until), (midnight - timedelta(days=1), midnight + timedelta(days=1)))

    def test_last_day_is_included(self) -> None:
        for text, end in (
            ("2026-11-19", datetime(2026, 11, 20, tzinfo=UTC)),
            ("2026-11-19T00:00", datetime(2026, 11, 19, tzinfo=UTC)),
            ("9999-12-31", None),
        ):
            with self.subTest(until=text):
                self.assertEqual(parse_filters(QueryDict(f"until={text}")).until, end)

    def test_days_are_those_of_the_zone_in_the_query(self) -> None:
        with mock.patch("django.utils.timezone.now", return_value=datetime(2026, 11, 20, 23, 30, tzinfo=UTC)):
            for zone, day in (("Europe/Berlin", "2026-11-21T00:00:00+01:00"), ("America/Lima", "2026-11-20T00:00:00-05:00")):
                selected = parse_filters(QueryDict(f"since=today&zone={zone}"))
                self.assertEqual(selected.since, datetime.fromisoformat(day))
            for name in ("", "Nowhere/At-all", "../etc/passwd", "x" * 9000, "%00"):
                selected = parse_filters(QueryDict(f"since=today&zone={name}"))
                self.assertEqual(selected.since, datetime(2026, 11, 20, tzinfo=UTC), name)

    def test_list_leads_page_by_page_to_the_end_and_back(self) -> None:
        Response.objects.bulk_create([log(f"resp_{n:03d}").row for n in range(PAGE_SIZE * 2 + 7)])
        seen, url = [], "/responses?status=in_progress"
        pages = []
        while url:
            page = self.page(url)
            pages.append(UID.findall(page))
            seen += pages[-1]
            link_match = re.search(r'href="(\?[^"]*)" rel="next"', page)
            url = "/responses" + link_match[1].replace("&amp;", "&") if link_match else ""
        self.assertEqual(seen, [f"resp_{n:03d}" for n in reversed(range(PAGE_SIZE * 2 + 7))])
        back = re.search(r'href="(\?[^"]*)" rel="prev"', page)
        assert back
        self.assertEqual(self.shown(back[1].replace("&amp;", "&")), pages[-2])

    def test_the_searched_range_is_shown_and_can_be_extended(self) -> None:
        for number in range(4):
            made(f"resp_{number}", deltas=1)
        with (
            mock.patch.object(responses_search, "RECENT_WINDOW", 2),
            mock.patch.object(responses_search, "search_indexed", return_value=None),
        ):
            page = self.page("/responses?q=from+resp_0")
            self.assertEqual(UID.findall(page), [])
            self.assertIn("Searched the latest 2 responses", page)
            further = re.search(r'href="(\?[^"]*)">Search older', page)
            assert further
            self.assertEqual(self.shown(further[1].replace("&amp;", "&")), ["resp_0"])

    def test_words_are_found_in_all_of_it_and_any_part_of_a_text_among_the_newest(self) -> None:
        long_text = 'First line\nsecond one,\twith "quotes", a number 12.5, Köln and Füße; snake_case'
        item(made("resp_old", deltas=1), "msg_said", "message", content=[{"type": "output_text", "text": long_text}])
        for number in range(3):
            made(f"resp_{number}", deltas=1)
        with mock.patch.object(responses_search, "RECENT_WINDOW", 2):
            for text in ("second", "SECOND one", "sec", "12.5", "with", '"quotes"', "köln and f", "snake_case", "line\nsecond"):
                with self.subTest(text=text):
                    self.assertEqual(self.shown(f"?{urlencode({'q': text})}"), ["resp_old"], text)
            for text in ("econd", "second first", "one second", "%", "..."):
                with self.subTest(text=text):
                    self.assertEqual(self.shown(f"?{urlencode({'q': text})}"), [], text)
            self.assertEqual(self.shown("?q=second&status=failed"), [])
            self.assertEqual(self.shown("?q=esp_2"), ["resp_2"])

    def test_a_search_for_words_that_takes_too_long_is_left(self) -> None:
        made("resp_old", deltas=1)
        made("resp_new", deltas=1)
        # A query of one second in the database: the statement timeout is the subject.
        slow = Item.objects.extra(where=["pg_sleep(1) IS NOT NULL"])
        with (
            mock.patch.object(responses_search, "INDEX_TIMEOUT_MS", 50),
            mock.patch.object(Item.objects, "annotate") as annotated,
        ):
            annotated.return_value.filter.return_value = slow
            self.assertIsNone(responses_search.search_indexed("old"))
        # The connection is as good as before.
        self.assertEqual(responses_search.search_indexed("old"), [Response.objects.get(uid="resp_old").pk])

    def test_people_see_their_projects_alone_and_strangers_nothing(self) -> None:
        made("resp_mine")
        Response.objects.filter(pk=made("resp_theirs").pk).update(project="q")
        ada = User.objects.create_user("ada")
        self.client.force_login(ada)
        self.assertEqual(self.shown(), [])
        Membership.objects.create(user=ada, project="p")
        self.assertEqual(self.shown(), ["resp_mine"])
        self.assertEqual(self.shown("?project=q"), [])
        self.page("/responses/resp_theirs", 404)
        Membership.objects.create(user=ada, project="q")
        self.assertEqual(self.shown(), ["resp_theirs", "resp_mine"])
        self.client.logout()
        for url in ("/responses", "/responses/resp_mine", "/responses/resp_mine/events", "/responses/resp_mine.jsonl"):
            with self.subTest(url=url):
                self.assertEqual(self.client.get(url).status_code, 302)

    def test_responses_stored_only_for_a_conversation_are_hidden(self) -> None:
        made("resp_hidden", stored=False)
        self.assertEqual(self.shown(), [])
        self.page("/responses/resp_hidden", 404)

    def test_the_histogram_counts_all_and_leads_to_its_times(self) -> None:
        for number in range(3):
            made(f"resp_{number}", created_at=NOW + timedelta(hours=number), status="failed" if number == 2 else "completed")
        page = self.page("/responses?model=m")
        self.assertIn("3 responses", page)
        self.assertEqual(page.count('class="failed"'), 1)
        bars = [link.replace("&amp;", "&") for link in re.findall(r'<a href="(\?[^"]*since=[^"]*)"', page)]
        self.assertEqual([self.shown(bar) for bar in bars], [["resp_0"], ["resp_1"], ["resp_2"]])

    def test_full_page_with_refused_requests_and_all_bars_is_small(self) -> None:
        for place in range(PAGE_SIZE + 1):
            row = made(f"resp_{place:048x}", created_at=NOW + timedelta(minutes=place), input_tokens=1234, cached_tokens=1200)
            # As long as an excerpt becomes.
            item(row, f"msg_out_{place}", "message", content=[{"type": "output_text", "text": "and so on " * 30}])
            item(row, f"msg_last_{place}", "message", Direction.INPUT, content=[{"type": "input_text", "text": "what " * 60}])
        refuse(20, NOW + timedelta(minutes=30))
        page = self.page("/responses")
        self.assertEqual(page.count("refused-"), 20)
        self.assertEqual(len(UID.findall(page)), PAGE_SIZE)
        self.assertLess(len(page.encode()), LARGEST)

    def test_refused_requests_stand_among_the_responses_of_their_time(self) -> None:
        for minute in range(PAGE_SIZE + 10):
            made(f"resp_{minute}", created_at=NOW + timedelta(minutes=minute))
        refuse(1, NOW + timedelta(minutes=58.5))
        refuse(1, NOW + timedelta(minutes=9.5), code="old_one")
        refuse(1, NOW + timedelta(minutes=5.5), code="older_one")
        refuse(1, NOW - timedelta(days=1), code="first_one")
        newest = self.page("/responses")
        self.assertRegex(newest, r'(?s)responses/resp_59".*class="badge status">Refused 400.*responses/resp_58"')
        older = re.search(r'href="\?(after=\d+)" rel="next"', newest)
        assert older is not None
        last = self.page(f"/responses?{older[1]}")
        self.assertRegex(last, r'(?s)old_one.*responses/resp_9".*responses/resp_6".*older_one.*responses/resp_5".*first_one')
        for code, count in (("old_one", 0), ("older_one", 0), ("first_one", 0)):
            self.assertEqual(newest.count(code), count)
        newer = re.search(r'href="\?(before=\d+)" rel="prev"', last)
        assert newer is not None
        self.assertEqual(self.page(f"/responses?{newer[1]}").count("Refused 400"), 1)
        # What only responses have excludes them, and so does the switch.
        for query in ("status=completed", "model=m", "tool=x", "seconds=0", "refused=hide", "q=never+said"):
            self.assertNotIn("Refused 400", self.page(f"/responses?{query}"), query)
        self.assertIn("older_one", self.page("/responses?q=older_one"))

    def test_the_number_of_requests_refused_lately_leads_to_these(self) -> None:
        refuse(3, timezone.now() - timedelta(minutes=59))
        refuse(4, timezone.now() - timedelta(minutes=61))
        match = re.search(r'<a href="(\?[^"]*)">3 refused requests</a> in the last hour', self.page("/responses"))
        assert match is not None
        self.assertEqual(self.page(f"/responses{html.unescape(match[1])}").count('<td class="time">'), 3)

    def test_refused_requests_beside_responses_are_bounded(self) -> None:
        made("resp_1")
        refuse(40, NOW + timedelta(minutes=1))
        page = self.page("/responses")
        self.assertEqual(page.count("Refused 400"), MAX_BESIDE)
        self.assertIn("The newest refused requests of this time are shown.", page)
        # The link keeps the filters.
        refuse(5, NOW + timedelta(minutes=1), "other_one")
        refuse(5, NOW - timedelta(days=2))
        page = self.page(f"/responses?q=invalid_value&since={NOW:%Y-%m-%dT%H:%M:%SZ}")
        match = re.search(r'<a href="(\?[^"]*)">Show all</a>', page)
        assert match is not None
        self.assertEqual(self.page(f"/responses{html.unescape(match[1])}").count('<td class="time">'), 40)

    def test_an_empty_list_is_small(self) -> None:
        page = self.page("/responses")
        self.assertLess(len(page), 10_000)
        self.assertIn('data-copy="#curl"', page)
        self.assertIn('<span class="shortcuts" hidden>', page)


class PlanTest(WebCase):
    """A list of many."""

    @classmethod
    def setUpTestData(cls) -> None:
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"many": MANY})
            cursor.execute(ITEMS, {})
            cursor.execute("ANALYZE responses_app_response, responses_app_item")

    @pytest.mark.slow
    def test_no_query_of_any_list_reads_a_whole_table_of_responses_or_items(self) -> None:
        middle = Response.objects.order_by("pk")[MANY // 2].pk
        for query in (
            "",
            f"?after={middle}",
            f"?before={middle}",
            "?status=failed",
            "?status=failed&model=m0",
            "?model=m3",
            "?model=unknown",
            "?tool=get_weather",
            "?tool=unknown",
            "?meta=user%3Dada",
            "?meta=user%3Dnobody",
            "?project=p1",
            "?since=1h",
            "?until=2020-01-01",
            "?since=2h&until=1h",
            "?q=resp_many_19999",
            "?q=nothing+at+all",
            "?seconds=100",
            "?tokens=99",
            "?status=failed&tokens=1000",
        ):
            with self.subTest(query=query):
                # As in a table that is much larger than what is looked through.
                with CaptureQueriesContext(connection) as queries, mock.patch.object(filters, "UNINDEXED_WINDOW", 4000):
                    self.page(f"/responses{query}")
                for sql in [one["sql"] for one in queries.captured_queries]:
                    if "responses_app_response" in sql or "responses_app_item" in sql:
                        self.assertNotRegex(self.plan(sql), r"Seq Scan on responses_app_(response|item)\b", f"{query}\n{sql}")

    def plan(self, sql: str) -> str:
        """Explain the query without sequential scans, because Postgres may prefer a sequential scan of a small table."""
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan TO off")
            cursor.execute("EXPLAIN " + sql.replace("%", "%%"), None)
            return "\n".join(row[0] for row in cursor.fetchall())
