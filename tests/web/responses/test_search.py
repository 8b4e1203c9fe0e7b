"""Search within the projects of a user: items of other projects neither hide results nor slow the search down."""

from __future__ import annotations

from unittest import mock

from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from responses_app.models import Membership, Response
from responses_app.runs.ids import new_id
from responses_app.web.responses import search
from tests.support.web.page_case import WebCase, item, made, snapshot

OTHERS = 1_500
FILL = """
INSERT INTO responses_app_response (uid, project, model, status, background, streamed, stored, thread, history, metadata, error_code,
  created_at, ended_at, tools, log_form)
SELECT 'resp_other_' || n, 'other', 'm', 'completed', false, true, true, 'resp_other_' || n, '{}', '{}'::jsonb, '', now(), now(), '{}', 1
FROM generate_series(1, %(others)s) AS n
"""
ITEMS = """
INSERT INTO responses_app_item (uid, response_id, project, direction, type, body)
SELECT 'msg_' || uid, id, project, 'input', 'message', '{"role":"user","content":[{"type":"input_text","text":"needle ' || uid || '"}]}'
FROM responses_app_response WHERE project = 'other'
"""
ODD = "o'dd\\ pro|ject & ' !"


class SearchProjectsTest(WebCase):
    """Search with an old match in the user's project and newer matches in another project."""

    def setUp(self) -> None:
        super().setUp()
        self.mine("resp_mine", "mine")
        with connection.cursor() as cursor:
            cursor.execute(FILL, {"others": OTHERS})
            cursor.execute(ITEMS)
            cursor.execute("ANALYZE responses_app_response, responses_app_item")
        self.ada = User.objects.create_user("ada")
        Membership.objects.create(user=self.ada, project="mine")
        self.client.force_login(self.ada)

    def mine(self, uid: str, project: str) -> Response:
        row = made(uid, deltas=1, project=project)
        item(row, f"msg_{uid}", "message", "input", role="user", content=[{"type": "input_text", "text": "a needle of mine"}])
        return row

    def test_newer_hits_of_others_do_not_hide_mine(self) -> None:
        # Nothing is found letter by letter, as if there were thousands of newer responses in my project too.
        with mock.patch.object(search, "RECENT_WINDOW", 0):
            self.assertIn("/chat/resp_mine", self.page("/chat?q=needle&everything=1"))
            self.assertNotIn("resp_other", self.page("/chat?q=needle&everything=1"))
        self.mine("resp_newer", "mine")
        with mock.patch.object(search, "RECENT_WINDOW", 1):
            page = self.page("/responses?q=needle")
            self.assertIn("resp_mine", page)
            self.assertNotIn("resp_other", page)

    def test_only_the_items_of_the_project_are_read(self) -> None:
        mine = Response.objects.get(uid="resp_mine").pk
        self.assertEqual(search.search_indexed("needle", ["mine"]), [mine])
        self.assertEqual(len(search.search_indexed("needle", ["mine", "other"]) or ()), OTHERS + 1)
        self.assertEqual(len(search.search_indexed("needle") or ()), OTHERS + 1)
        self.assertEqual(search.search_indexed("needle", []), [])
        with CaptureQueriesContext(connection) as queries:
            search.search_indexed("needle", ["mine"])
        (sql,) = [one["sql"] for one in queries.captured_queries if "@@" in one["sql"]]
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL enable_seqscan TO off")
            cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql.replace("%", "%%"))
            (plan,) = cursor.fetchone()[0]
        scan = plan["Plan"]
        self.assertEqual((scan["Node Type"], scan["Actual Rows"]), ("Bitmap Heap Scan", 1))
        index = scan["Plans"][0]
        self.assertEqual(index["Index Name"], "item_search")
        self.assertLess(index["Actual Rows"], OTHERS / 10)

    def test_text_with_an_id_is_found_in_the_index(self) -> None:
        uid, mentioned = new_id("msg_"), new_id("resp_")
        row = made("resp_quoting", deltas=1, project="mine")
        item(row, uid, "message", "input", role="user", content=[{"type": "input_text", "text": f"see {mentioned} for tea"}])
        for text in (uid, "for tea", f"see {mentioned} for"):
            with self.subTest(text=text):
                self.assertEqual(search.search_indexed(text, ["mine"]), [row.pk])
        self.assertEqual(search.search_indexed(uid, ["other"]), [])
        # The id of another response, in a text of which only the id differs.
        self.assertEqual(search.search_indexed(f"see {new_id('resp_')} for", ["mine"]), [])

    def test_names_of_projects_are_quoted(self) -> None:
        row = self.mine("resp_odd", ODD)
        self.assertEqual(search.search_indexed("needle", [ODD]), [row.pk])
        self.assertEqual(search.search_indexed("needle", ["o"]), [])
        self.assertEqual(search.search_indexed("project mine", ["other"]), [])

    def test_a_project_of_others_in_the_address_finds_nothing(self) -> None:
        with (
            mock.patch.object(search, "RECENT_WINDOW", 0),
            mock.patch.object(search, "search_indexed", wraps=search.search_indexed) as far,
        ):
            self.assertNotIn("resp_other", self.page("/responses?q=needle&project=other"))
        for call in far.call_args_list:
            self.assertEqual(call.args[1], [])


class SearchErrorsTest(WebCase):
    """Search for a word of an error message."""

    def test_failed_response_is_found_by_its_message(self) -> None:
        for uid, message in (("resp_odd", "The engine is Out of sorts."), ("resp_other", "No memory.")):
            snapshot(
                made(uid, status="failed", error_code="server_error"), [], error={"code": "server_error", "message": message}
            )
        page = self.page("/responses?q=out+of+SORTS&status=failed")
        self.assertIn("/responses/resp_odd", page)
        self.assertNotIn("resp_other", page)
        # The code stands with the message alone, so that the row is one line.
        self.assertIn(">server_error: The engine is Out of sorts.<", page)
        self.assertEqual(page.count("server_error"), 1)
