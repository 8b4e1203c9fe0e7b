"""Error pages 400, 403, 404, 500 and 503, invalid forms, and the request as code."""

from __future__ import annotations

import ast
import html
import re
from typing import Any
from unittest import mock

import psycopg
from django.contrib.auth.models import User
from django.db import OperationalError, connection, connections
from django.test import AsyncClient, Client, RequestFactory, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from django.views.defaults import bad_request
from psycopg_pool import ConnectionPool

from responses_app.models import Direction, Membership
from responses_app.observability.records import ObservedRequest, current_request
from responses_app.store.db import await_connection
from responses_app.store.files.storage import StorageUnavailable
from responses_app.web.delivery import csp
from responses_app.web.error_pages import server_error
from tests.support.web.page_case import WebCase, item, made


def connections_in_use() -> int:
    """Return the number of connections that were taken from the pool and not returned."""
    pool: Any = connections["default"]
    statistics = pool.pool.get_stats()
    return int(statistics["pool_size"] - statistics["pool_available"])


class ErrorPagesTest(WebCase):
    """Error pages for signed-in users and anonymous visitors."""

    def error(self, url: str, status: int, client: Client | None = None, **kwargs: Any) -> str:
        """The page of an error, which looks like any other page."""
        answer = (client or self.client).get(url, **kwargs)
        self.assertEqual(answer.status_code, status, url)
        self.assertEqual(answer["Content-Security-Policy"], csp.POLICY)
        if status in {403, 404}:
            # The page names the user.
            self.assertIn("no-store", answer["Cache-Control"])
        text: str = answer.content.decode()
        self.assertIn('href="/static/web/base.css"', text)
        self.assertIn('<html lang="en">', text)
        self.assertIn('<a class="brand" href="/">', text)
        return text

    def test_an_unknown_address_leads_on(self) -> None:
        page = self.error("/nowhere", 404)
        self.assertIn("<h1>Page not found</h1>", page)
        # Nor does the page name a class.
        page_of_key = self.error("/keys/999", 404)
        self.assertNotIn("ApiKey", page_of_key)
        self.assertIn("nothing with this ID in your projects", page_of_key)
        self.assertIn(f"You’re signed in as {self.operator.get_username()}.", page_of_key)
        self.assertIn('href="/responses">Responses</a>', page)
        self.assertNotIn("Resolver404", page)
        page = self.error("/nowhere", 404, Client())
        self.assertIn('href="/sign-in"', page)

    async def test_page_of_an_async_view_returns_its_connection_to_the_pool(self) -> None:
        ada = await User.objects.acreate(username="ada")
        client = AsyncClient()
        await client.aforce_login(ada)
        before = connections_in_use()
        self.assertEqual((await client.get("/chat/resp_none/turns")).status_code, 404)
        self.assertEqual((await client.get("/chat")).status_code, 403)
        self.assertEqual(connections_in_use(), before)

    def test_an_unknown_response_is_named_in_the_404(self) -> None:
        made()
        self.assertIn("No response with this ID in your projects.", self.error("/responses/resp_none", 404))
        self.assertIn("No response with this ID", self.error("/responses/resp_none/live", 404))
        self.assertIn("This response has no event with this number.", self.error("/responses/resp_1/events/9999", 404))
        self.assertIn("This response has no item with this ID.", self.error("/responses/resp_1/items/msg_none", 404))

    def test_a_user_without_a_project_sees_instructions_in_chat_and_list(self) -> None:
        made()
        self.client.force_login(User.objects.create_user("ada"))
        page = self.error("/chat", 403)
        self.assertIn("You’re not a member of any project. Ask an admin to add you to one.", page)
        self.assertIn("You’re signed in as ada.", page)
        self.assertIn('action="/sign-out"', page)
        page = self.page("/responses")
        self.assertIn("You’re not a member of any project", page)
        self.assertNotIn("Send your first request", page)

    def test_another_project_is_refused_in_words(self) -> None:
        ada = User.objects.create_user("ada")
        Membership.objects.create(user=ada, project="q")
        self.client.force_login(ada)
        self.assertIn("You’re not a member of this project.", self.error("/chat?project=p", 403))

    def test_the_address_of_a_form_says_that_it_is_no_page(self) -> None:
        for path in ("/sign-out", "/responses/selection"):
            with self.subTest(path=path):
                answer = self.client.get(path)
                self.assertContains(answer, "This address shows no page", status_code=405)
                self.assertEqual(int(answer["Content-Length"]), len(answer.content))

    def test_an_expired_form_has_an_explanation(self) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(self.operator)
        answer = strict.post("/responses/resp_1/delete")
        self.assertEqual(answer.status_code, 403)
        self.assertContains(answer, "<h1>This form has expired</h1>", status_code=403)
        self.assertContains(answer, 'href="/static/web/base.css"', status_code=403)

    @override_settings(ALLOWED_HOSTS=["good.example"])
    def test_a_bad_request_has_an_explanation(self) -> None:
        page = self.error("/responses", 400, HTTP_HOST="bad.example")
        self.assertIn("<h1>Bad request</h1>", page)

    def failed(self, error: Exception, status: int) -> str:
        """Return the page of a view that raises an exception."""
        made()
        self.client.raise_request_exception = False
        with mock.patch("responses_app.web.response.conversation.event_headers", side_effect=error):
            page = self.error("/responses/resp_1", status)
        self.assertNotIn(str(error), page)
        self.assertNotIn("Sign out", page)
        return page

    def test_our_own_mistake_is_a_page_without_its_message(self) -> None:
        self.assertIn("<h1>Something went wrong</h1>", self.failed(ValueError("secret detail"), 500))
        token = current_request.set(ObservedRequest("GET", "/", request_id="req_1"))
        self.addCleanup(current_request.reset, token)
        self.assertIn(b"for the request <code>req_1</code>", server_error(RequestFactory().get("/")).content)

    def test_database_that_is_away_is_named(self) -> None:
        with self.assertLogs("django.request") as logs:
            self.assertIn("<h1>The database doesn’t answer</h1>", self.failed(OperationalError("no connection"), 503))
        self.assertEqual([(one.getMessage(), one.exc_info) for one in logs.records], [(" database: no connection", None)])

    def test_database_that_is_away_is_named_to_a_script(self) -> None:
        self.client.raise_request_exception = False
        error = OperationalError("no connection")
        with (
            mock.patch("responses_app.web.chat.views.browser_key.secret", side_effect=error),
            self.assertLogs("django.request"),
        ):
            answer = self.client.get("/chat/secret?project=default", headers={"Accept": "application/json"})
        self.assertEqual((answer.status_code, answer["Retry-After"]), (503, "10"))
        self.assertEqual(answer.json(), {"error": {"message": "The database doesn’t answer."}})

    def test_storage_of_files_that_is_away_is_named(self) -> None:
        with self.assertLogs("django.request") as logs:
            self.assertIn("<h1>The files can’t be reached</h1>", self.failed(StorageUnavailable("no answer in time"), 503))
        self.assertEqual(
            [(one.getMessage(), one.exc_info) for one in logs.records], [(" storage of files: no answer in time", None)]
        )

    def test_page_of_a_form_is_not_loaded_again_by_itself(self) -> None:
        made()
        self.client.raise_request_exception = False
        with (
            mock.patch("responses_app.web.keys.views.KeyForm.is_valid", side_effect=OperationalError("away")),
            self.assertLogs("django.request"),
        ):
            answer = self.client.post("/keys", {"name": "laptop", "project": "p"})
        self.assertContains(answer, "Go back in a moment", status_code=503)
        self.assertNotContains(answer, "away.js", status_code=503)

    def test_page_of_a_session_waits_a_few_seconds_alone_for_the_database(self) -> None:
        with (
            mock.patch("responses_app.web.error_pages.await_connection", side_effect=OperationalError("away")) as awaited,
            self.assertLogs("django.request"),
        ):
            self.client.raise_request_exception = False
            self.assertIn("<h1>The database doesn’t answer</h1>", self.error("/responses", 503))
            self.assertEqual(Client().get("/responses").status_code, 302)
        awaited.assert_called_once_with(5.0)

    def test_waiting_for_the_database_ends_before_the_limit_of_the_pool(self) -> None:
        with ConnectionPool("host=127.0.0.1 port=1", min_size=0, max_size=1, timeout=600, open=True) as pool:
            unused = mock.Mock(connection=None, pool=pool, wrap_database_errors=connection.wrap_database_errors)
            with mock.patch("responses_app.store.db.connection", unused), self.assertRaises(OperationalError):
                await_connection(0.01)

    def test_full_disk_is_named(self) -> None:
        error = OperationalError("could not extend file")
        error.__cause__ = psycopg.errors.DiskFull()
        self.assertIn("<h1>The disk is full</h1>", self.failed(error, 503))

    def test_the_page_of_our_own_mistake_is_rendered_without_a_user_or_a_query(self) -> None:
        with CaptureQueriesContext(connection) as queries:
            request = RequestFactory().get("/")
            for answer in (server_error(request), bad_request(request, ValueError())):
                with self.subTest(status=answer.status_code):
                    self.assertIn(b'<a class="brand" href="/">', answer.content)
        self.assertEqual(len(queries), 0)


class FiltersTest(WebCase):
    """URL and open filters of the list."""

    def test_empty_fields_of_the_form_are_left_out_of_the_address(self) -> None:
        empty = "key=&tool=&since=&until=&meta=&seconds=&tokens="
        answer = self.client.get(f"/responses?q=a+b&status=failed&model=&{empty}")
        self.assertRedirects(answer, "/responses?q=a+b&status=failed")
        self.assertRedirects(self.client.get(f"/responses?q=&{empty}&live=1"), "/responses?live=1")
        self.assertRedirects(self.client.get(f"/responses?{empty}"), "/responses")

    def test_more_filters_open_only_if_one_of_them_is_set(self) -> None:
        made(status="failed")
        for query in ("", "?status=failed", "?model=m", "?q=x", "?status=failed&model=m&q=x&live=1"):
            with self.subTest(query=query):
                self.assertIn("<details><summary>More filters", self.page(f"/responses{query}"), query)
        for query in ("?tool=x", "?since=2h", "?seconds=odd", "?status=failed&tokens=1"):
            with self.subTest(query=query):
                self.assertIn("<details open><summary>More filters", self.page(f"/responses{query}"), query)

    def test_invalid_filters_are_named_by_their_label(self) -> None:
        page = self.page("/responses?since=someday&seconds=fast&meta=x&status=odd")
        for message in (
            "“From” isn’t a valid time. Try yesterday, 2h or 2026-11-20T12:00.",
            "“Min duration (s)” must be a number.",
            "“Metadata” must be key=value, with commas between several.",
            "“Status” must be one of queued,",
        ):
            with self.subTest(message=message):
                self.assertIn(message, page)

    def test_an_empty_list_invites_to_a_first_request(self) -> None:
        page = self.page("/responses")
        self.assertIn("curl http://testserver/v1/responses", page)
        self.assertIn('href="/chat">Open chat</a>', page)

    @override_settings(TIME_ZONE="America/New_York")
    def test_times_are_those_of_the_zone_that_is_named(self) -> None:
        zone: Any = timezone.get_default_timezone
        zone.cache_clear()
        self.addCleanup(zone.cache_clear)
        made("resp_1")
        page = self.page("/responses")
        self.assertRegex(page, r"Nov 19, (2026, )?19:00:00")
        self.assertRegex(page, r'Times in <span data-zone="E[SD]T">E[SD]T\.</span>')
        self.assertIn("2026-11-19 19:00:00 EST", self.page("/responses/resp_1"))
        self.assertIn("resp_1", self.page("/responses?since=2026-11-19T18:59&until=2026-11-19T19:01"))


class ReproduceTest(WebCase):
    """The request again, as code."""

    def test_long_arguments_of_the_python_call_are_broken_into_lines_and_mean_the_same(self) -> None:
        row = made("resp_1")
        parts = [{"type": "input_text", "text": 'it\'s "quoted" ' * 6}, {"type": "input_text", "text": "short"}]
        item(row, "msg_long", "message", Direction.INPUT, role="user", content=parts)
        page = self.page("/responses/resp_1/wire")
        match = re.search(r'<pre id="python" data-code="python">(.*?)</pre>', page, re.DOTALL)
        assert match
        code = html.unescape(match[1])
        call = ast.parse(code).body[-2]
        assert isinstance(call, ast.Assign)
        assert isinstance(call.value, ast.Call)
        keywords = {one.arg: ast.literal_eval(one.value) for one in call.value.keywords}
        self.assertEqual(keywords["input"][-1], {"type": "message", "role": "user", "content": parts})
        self.assertIn("\n            'content': [\n", code)
        self.assertIn("print(response.output_text or response.output)", code)
