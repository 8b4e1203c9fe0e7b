"""Test case of the pages: stored responses with logs and items, and a check of the Content-Security-Policy."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import orjson
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.test import TestCase

from responses_app.models import AuditEntry, Direction, Event, Item, Response, Status
from responses_app.runs.create_request import CreateRequest
from responses_app.web.delivery import csp
from tests.support.store.log_records import NOW
from tests.support.store.stored_logs import log_frames, stored_response

INLINE = re.compile(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=|(href|src)=\"?javascript:", re.IGNORECASE)
LARGEST = 60_000
# A stored request without parameters.
PLAIN_REQUEST = CreateRequest(project="p", key=None, model="m", input=()).dump()


def made(uid: str = "resp_1", *, deltas: int = 40, **fields: Any) -> Response:
    """Store an ended response with a log and an output message."""
    row = stored_response(
        log_frames(deltas),
        uid,
        **{"ended_at": NOW + timedelta(seconds=2), "output_tokens": deltas, "time_to_first_token_ms": 120, **fields},
    )
    item(
        row,
        "msg_in_" + uid,
        "message",
        Direction.INPUT,
        role="user",
        content=[{"type": "input_text", "text": f"Hi from {uid}"}],
    )
    return row


def item(row: Response, uid: str, kind: str, direction: str = Direction.OUTPUT, **fields: Any) -> Item:
    """Store an item of the response."""
    body = orjson.dumps({"id": uid, "type": kind, **fields}).decode()
    return Item.objects.create(uid=uid, response=row, project=row.project, direction=direction, type=kind, body=body)


def snapshot(row: Response, output: list[dict[str, Any]], **fields: Any) -> None:
    """Replace the log by two events, with `output` and `fields` in the terminal snapshot."""
    body = {"id": row.uid, "object": "response", "status": row.status, "model": row.model, "output": output, **fields}
    event: dict[str, Any] = {"type": "response.completed", "sequence_number": 1, "response": body}
    Event.objects.filter(response=row).delete()
    first: dict[str, Any] = {"type": "response.created", "sequence_number": 0, "response": {**body, "output": []}}
    for number, one in enumerate((first, event)):
        Event.objects.create(response=row, number=number, type=one["type"], data=orjson.dumps(one).decode(), ms=number * 9)


def text_of(page: str) -> str:
    """Return the text of a page on a single line."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


async def _collected(answer: Any) -> bytes:
    return b"".join([part async for part in answer.streaming_content])


def collect(answer: Any) -> bytes:
    """Return all bytes of a streaming response."""
    return async_to_sync(_collected)(answer)


class WebCase(TestCase):
    """Test case with a signed-in superuser."""

    def setUp(self) -> None:
        self.operator = User.objects.create_superuser("root", "", "x")
        self.client.force_login(self.operator)

    def audited(self, *actions: str) -> list[tuple[str, str]]:
        """The names and the objects of the entries of the audit log with these actions, oldest first."""
        rows = AuditEntry.objects.filter(action__in=actions, actor_kind="user").exclude(project="").order_by("pk")
        return list(rows.values_list("action", "object"))

    def page(self, url: str, status: int = 200) -> str:
        """Fetch a page and check that it has no inline scripts or styles."""
        answer = self.client.get(url)
        self.assertEqual(answer.status_code, status, url)
        self.assertEqual(answer["Content-Security-Policy"], csp.POLICY)
        text: str = answer.content.decode()
        # Escaped text of a model may look like a tag.
        self.assertIsNone(INLINE.search(re.sub(r"&lt;.*?&gt;", "", text)), url)
        return text

    def download(self, url: str) -> bytes:
        """Fetch all bytes of a streaming response."""
        return collect(self.client.get(url))


__all__ = ["LARGEST", "Status", "WebCase", "collect", "item", "made", "snapshot"]
