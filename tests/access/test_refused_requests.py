"""Refused requests are noted without content, bounded by key and minute, and written behind the requests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from django.contrib.auth.models import User
from django.test import TestCase

from responses_app.errors import InvalidRequest, NotFound, RateLimited, Unauthorized
from responses_app.models import ApiKey, Membership, RefusedRequest
from responses_app.store import refused_requests
from responses_app.store.refused_requests import ROWS_PER_MINUTE, RefusalBuffer, RequestPlace
from responses_app.web.responses.refused import visible_refusals


class RefusedRequestsTest(TestCase):
    """Against the real database."""

    def setUp(self) -> None:
        self.key = ApiKey.objects.create(name="k", project="p", prefix="sk-1", digest="d")

    def place(self, key: ApiKey | None) -> RequestPlace:
        return RequestPlace("req_1", "POST", "/v1/responses", key)

    def test_requests_beyond_the_bound_are_counted_in_the_last_row(self) -> None:
        buffer = RefusalBuffer()
        for _ in range(ROWS_PER_MINUTE + 5):
            buffer.note(RateLimited("Rate limit reached."), self.place(self.key))
        buffer.note(Unauthorized("No key."), self.place(None))
        rows = buffer.take()
        # The last row of the minute still counts.
        self.assertEqual(len(rows), ROWS_PER_MINUTE)
        buffer._minute_began = -1e9
        (last,) = buffer.take()
        self.assertEqual(last.count, 6)
        self.assertEqual({(row.status, row.project) for row in rows}, {(429, "p"), (401, "")})

    def test_missing_objects_are_not_noted_and_texts_fit_their_columns(self) -> None:
        buffer = RefusalBuffer()
        buffer.note(NotFound("Nothing here."), self.place(self.key))
        buffer.note(InvalidRequest("\0\udc80" + "x" * 5000, code="c" * 500), self.place(self.key))
        rows = buffer.take()
        RefusedRequest.objects.bulk_create(rows)
        self.assertEqual([(row.status, len(row.message), len(row.code)) for row in rows], [(400, 300, 64)])

    def test_refused_request_of_the_api_is_written_with_its_key_and_pruned(self) -> None:
        answer = self.client.post("/v1/responses", "{}", content_type="application/json")
        self.assertEqual(answer.status_code, 401)
        self.key.delete()
        refused_requests.buffer.note(InvalidRequest("Bad."), self.place(self.key))
        self.assertEqual(list(refused_requests.write_due(datetime.now(UTC))), [2])
        rows = RefusedRequest.objects.order_by("pk")
        self.assertEqual([(row.status, row.key_id, row.project) for row in rows], [(401, None, ""), (400, None, "p")])
        self.assertEqual((rows[0].request_id, rows[0].address), (answer["x-request-id"], "127.0.0.1"))
        self.assertEqual(sum(refused_requests.prune(datetime.now(UTC) + timedelta(days=31), None)), 2)

    def test_requests_without_a_key_are_for_staff_alone(self) -> None:
        for project in ("", "p", "q"):
            RefusedRequest.objects.create(created_at=datetime.now(UTC), project=project, status=400, message="x", path="/")
        person = User.objects.create_user("person")
        Membership.objects.create(user=person, project="p")
        staff = User.objects.create_user("staff", is_staff=True)
        root = User.objects.create_superuser("root", "", "x")
        seen = {user.username: sorted(row.project for row in visible_refusals(user)) for user in (person, staff, root)}
        self.assertEqual(seen, {"person": ["p"], "staff": [""], "root": ["", "p", "q"]})
        self.client.force_login(person)
        page = self.client.get("/responses?status=refused").content.decode()
        self.assertEqual(page.count("<tr>"), 2)
