"""Pages of a response in every status, with code and message of errors."""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.html import escape

from responses_app.models import Direction, Event, Lease, Response
from responses_app.store.log.archive import archive_log
from responses_app.web.response.conversation import WAITING
from tests.support.store.stored_events import row_frames
from tests.support.store.stored_logs import log_frames
from tests.support.web.page_case import WebCase, item, made, snapshot

PAGES = ("", "/events", "/events/0", "/wire", "/prompt", "/chain", "/check", "/delete", ".json", ".jsonl", ".sse")
FAILED = {"error": {"code": "server_error", "message": "The engine \x1b ended <b>early</b>."}}
KEY_DEFAULT = {"reason": "max_output_tokens", "limit": "key_default", "value": 4096}
LIMITED = {"incomplete_details": {"reason": "max_output_tokens"}}


def ended(status: str, terminal: str, **fields: Any) -> Response:
    """Store a response with a terminal event of type `terminal` and `fields` in the snapshot."""
    row = made(f"resp_{status}", status=status)
    last = Event.objects.filter(response=row).order_by("number").last()
    assert last is not None
    event = orjson.loads(row_frames(last)[-1].data)
    event["type"] = terminal
    event["response"].update(status=status, error=None, incomplete_details=None)
    event["response"].update(fields)
    Event.objects.filter(pk=last.pk).update(type=terminal, data=orjson.dumps(event).decode(), packed=None)
    return row


def running(status: str, events: int) -> Response:
    """A response that has not ended, with the first events of a log."""
    row = made(f"resp_{status}", status=status, ended_at=None, output_tokens=None, time_to_first_token_ms=None)
    Event.objects.filter(response=row, number__gte=events).delete()
    return row


class OutcomesTest(WebCase):
    """Pages of responses with logs of the writer."""

    def opened(self, row: Response) -> str:
        """Open every page of the response and return the text of the first page."""
        for path in (*PAGES, f"/items/msg_in_{row.uid}"):
            with self.subTest(uid=row.uid, path=path):
                self.assertEqual(self.client.get(f"/responses/{row.uid}{path}").status_code, 200)
        self.assertEqual(self.client.get(f"/responses/{row.uid}/rerun?column={row.uid}").status_code, 200)
        self.assertEqual(self.client.get("/responses").status_code, 200)
        return self.page(f"/responses/{row.uid}")

    def test_row_of_a_failed_response_has_the_message(self) -> None:
        row = ended("failed", "response.failed", **FAILED)
        for is_archived in (False, True):
            with self.subTest(is_archived=is_archived):
                if is_archived:
                    archive_log(row.pk)
                self.assertIn("ended &lt;b&gt;early&lt;/b&gt;.</span>", self.page("/responses"))
                self.assertIn("ended &lt;b&gt;early&lt;/b&gt;.", self.page("/?range=30d"))

    def test_completed_response_without_text_says_so(self) -> None:
        thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": []}
        empty = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": " "}]}
        for output, is_named in (([], True), ([thought], True), ([thought, empty], True), ([{**thought, "type": "x"}], False)):
            with self.subTest(output=output):
                row = ended("completed", "response.completed", output=output)
                self.assertIs("The model returned no text." in self.page(f"/responses/{row.uid}"), is_named)
                row.delete()

    def test_a_response_that_waits_for_an_approval_leads_to_the_chat(self) -> None:
        row = made()
        asking = {"id": "mcpr_1", "type": "mcp_approval_request", "server_label": "demo", "name": "look", "arguments": "{}"}
        snapshot(row, [asking])
        link = f'href="/chat?previous_response_id={row.uid}">Approve or deny in the chat</a>'
        self.assertIn(link, self.page(f"/responses/{row.uid}"))
        later = made("resp_2", thread=row.uid, previous_uid=row.uid)
        answer = {"approval_request_id": "mcpr_1", "approve": True}
        item(later, "mcpa_1", "mcp_approval_response", Direction.INPUT, **answer)
        self.assertNotIn(link, self.page(f"/responses/{row.uid}"))

    def test_a_failed_response_shows_the_code_and_the_message_of_its_error(self) -> None:
        row = ended("failed", "response.failed", **FAILED)
        page = self.opened(row)
        self.assertIn("Response failed", page)
        # A long conversation has the message far below.
        self.assertIn('href="#outcome"', page)
        self.assertIn('id="outcome"', page)
        self.assertIn("<code>server_error</code>", page)
        self.assertIn("The engine ⟨U+001B⟩ ended &lt;b&gt;early&lt;/b&gt;.", page)
        archive_log(row.pk)
        self.assertIn("<code>server_error</code>", self.opened(row))

    def test_a_failed_response_says_what_to_do(self) -> None:
        for code, text in (("server_error", "the log of the server has the cause"), ("invalid_prompt", "Change the input")):
            with self.subTest(code=code):
                Response.objects.filter(uid="resp_failed").delete()
                row = ended("failed", "response.failed", error={"code": code, "message": "It ended."})
                for page in (self.page(f"/responses/{row.uid}"), self.page(f"/responses/{row.uid}/rerun?column={row.uid}")):
                    self.assertIn(text, page)

    def test_a_run_without_output_is_not_called_valid(self) -> None:
        answer = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
        for output, is_valid in (([], False), ([answer], True)):
            with self.subTest(output=output):
                row = ended("failed", "response.failed", output=output, **FAILED)
                self.assertIs('<span class="ok">Valid</span>' in self.page(f"/responses/{row.uid}/rerun"), is_valid)
                row.delete()

    def test_a_failed_response_without_a_message_has_a_notice(self) -> None:
        for error in ({"code": "server_error", "message": None}, {"code": None, "message": ""}, None):
            with self.subTest(error=error):
                Response.objects.filter(uid="resp_failed").delete()
                page = self.opened(ended("failed", "response.failed", error=error))
                self.assertIn("The server recorded no error message.", page)

    def test_a_response_that_failed_before_any_event_was_stored_opens(self) -> None:
        row = made("resp_empty", status="failed", error_code="server_error")
        Event.objects.filter(response=row).delete()
        self.assertEqual(self.client.get("/responses/resp_empty").status_code, 200)
        self.assertIn("<code>server_error</code>", self.page("/responses/resp_empty"))

    def test_an_incomplete_response_shows_the_reason(self) -> None:
        page = self.opened(ended("incomplete", "response.incomplete", **LIMITED))
        self.assertIn("Response incomplete", page)
        self.assertIn("Stopped at the end of the context", page)
        self.assertIn("<code>max_output_tokens</code>", page)

    def test_the_list_and_the_chat_say_the_reason_as_the_page_does(self) -> None:
        usage = {"input_tokens": 1, "output_tokens": 16, "total_tokens": 17}
        cases: list[tuple[dict[str, Any], str]] = [
            (
                {"max_output_tokens": 16, "usage": usage, **LIMITED},
                "Stopped at the output token limit of 16. Ask the model",
            ),
            ({"max_output_tokens": 99, "usage": usage, **LIMITED}, "Stopped at the end of the context"),
            ({"max_output_tokens": None, "usage": usage, **LIMITED}, "Stopped at the end of the context"),
            (
                {"incomplete_details": {"reason": "max_run_seconds"}},
                "Stopped at the limit of the running time. Ask the model",
            ),
            ({"incomplete_details": KEY_DEFAULT}, "Stopped at 4,096 output tokens: the default of this key. Ask the model"),
            (
                {"incomplete_details": {"reason": "max_run_seconds", "limit": "model_maximum", "value": 60}},
                "Stopped at 60 s of running time: the maximum of the model. Ask the model to continue.",
            ),
            (
                {"incomplete_details": {"reason": "max_output_tokens", "limit": "context_window", "value": 8192}},
                "Stopped at the end of the context of 8,192 tokens. Shorten the input",
            ),
            ({"incomplete_details": {"reason": "content_filter"}}, "Stopped by the content filter. Ask in other words."),
            ({"incomplete_details": {"reason": "steered"}}, "Stopped because the client sent new input."),
            ({"incomplete_details": {"reason": "<b>"}}, "The response ended before it was finished."),
        ]
        for fields, text in cases:
            with self.subTest(fields=fields):
                Response.objects.filter(uid="resp_incomplete").delete()
                row = ended("incomplete", "response.incomplete", **fields)
                self.assertIn(text, self.page(f"/responses/{row.uid}"))
                self.assertIn(
                    f"<span dir=auto>{escape(fields['incomplete_details']['reason'])}</span>", self.page("/responses")
                )
                self.assertIn(text, self.client.get(f"/chat/{row.uid}/times").json()["ending"])
                self.assertIn(text, self.client.get(f"/chat/{row.uid}/turns").json()["turns"][0]["times"]["ending"])
                self.assertIn(text, self.page(f"/responses/{row.uid}/rerun?column={row.uid}"))

    def test_an_incomplete_response_of_another_reason_names_it(self) -> None:
        for details in ({"reason": "another"}, {}, None):
            with self.subTest(details=details):
                Response.objects.filter(uid="resp_incomplete").delete()
                page = self.opened(ended("incomplete", "response.incomplete", incomplete_details=details))
                self.assertIn("The response ended before it was finished.", page)

    def test_a_cancelled_response_has_a_notice(self) -> None:
        page = self.opened(ended("cancelled", "response.incomplete"))
        self.assertIn("Response cancelled", page)

    def test_a_queued_response_opens(self) -> None:
        row = running("queued", 1)
        page = self.opened(row)
        self.assertIn("Queued", page)
        self.assertIn('class="status queued"', page)

    def test_a_response_in_progress_opens_at_any_event(self) -> None:
        for events in (0, 1, 2, 3, 9, len(log_frames(40)) - 1):
            Response.objects.filter(uid="resp_in_progress").delete()
            row = running("in_progress", events)
            for path in PAGES if events else [one for one in PAGES if not one.startswith(("/events/", "."))]:
                with self.subTest(events=events, path=path):
                    self.assertEqual(self.client.get(f"/responses/{row.uid}{path}").status_code, 200)

    def test_a_response_that_another_process_continues_says_so_before_its_first_event(self) -> None:
        row = running("in_progress", 5)
        for last, is_named in ((4, True), (3, False)):
            Response.objects.filter(pk=row.pk).update(takeovers=[last])
            for tab in ("", "/events", "/takeovers"):
                page = self.page(f"/responses/{row.uid}{tab}")
                self.assertIs("another process is continuing the response." in page, is_named)
                self.assertIs("another process continued after" in page, not is_named)
        # The second process has ended too.
        Response.objects.filter(pk=row.pk).update(takeovers=[4])
        Lease.objects.create(response=row, model="m")
        page = self.page(f"/responses/{row.uid}/takeovers")
        self.assertNotIn("another process is continuing the response.", page)
        self.assertIn(WAITING, page)

    def test_output_problems_are_on_the_conversation_and_the_events(self) -> None:
        problems = [
            {"type": "unknown_tool", "message": "The tool is unknown.", "output_index": 0, "item_id": "fc_1"},
            {"type": "unfinished_marker", "message": "The output ended.", "text": "<b>\x1b"},
        ]
        row = ended("completed", "response.completed", output_problems=problems)
        pages = (self.opened(row), self.page(f"/responses/{row.uid}/events"))
        for page in pages:
            with self.subTest(page=page[:80]):
                self.assertIn("<code>unknown_tool</code> The tool is unknown.", page)
                self.assertIn("&lt;b&gt;⟨U+001B⟩</code>", page)
        self.assertIn(f'href="/responses/{row.uid}/items/fc_1"', pages[0])

    def test_a_completed_response_shows_no_error(self) -> None:
        page = self.opened(made())
        self.assertNotIn('role="alert"', page)
        self.assertNotIn("Output problems", page)
