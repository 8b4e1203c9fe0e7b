"""Shares of projects in lists, and in the requests to files, containers and vector stores."""

from __future__ import annotations

import asyncio
import threading
from unittest.mock import patch

import pytest
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings

from responses_app.api import http
from responses_app.errors import RateLimited
from responses_app.models import ApiKey
from responses_app.utils.shares import ProjectShares
from responses_app.wire import item_serializer
from tests.support.api.conversation_case import ConversationCase, user
from tests.support.waiting import run_ready_tasks


@override_settings(RESPONSES_RESOURCE_PARALLEL=2)
def test_many_requests_of_a_project_leave_a_place_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_WAITING", 2)

    async def main() -> None:
        gate, started_projects = asyncio.Event(), list[str]()

        async def handler(_request: HttpRequest, key: ApiKey) -> HttpResponseBase:
            started_projects.append(key.project)
            if key.project == "busy":
                await gate.wait()
            return HttpResponse()

        handle, busy = http.in_share(handler), ApiKey(project="busy")
        waiting = [asyncio.ensure_future(handle(HttpRequest(), busy)) for _ in range(3)]
        await run_ready_tasks(2)
        await handle(HttpRequest(), ApiKey(project="quiet"))
        with pytest.raises(RateLimited, match="wait already"):
            await handle(HttpRequest(), busy)
        assert started_projects == ["busy", "quiet"]
        gate.set()
        await asyncio.gather(*waiting)
        assert started_projects == ["busy", "quiet", "busy", "busy"]

    asyncio.run(main())


class SharedListTest(ConversationCase):
    """Lists of responses and items, which can have megabytes of text."""

    async def test_lists_wait_for_a_place_of_the_project(self) -> None:
        lists = ("responses", "responses/resp_1/input_items", "conversations/conv_1/items", "chat/completions")
        async with self.serving() as client:
            self.assertEqual([(await client.get(f"/v1/{path}")).status_code for path in lists], [200, 404, 404, 200])
            full = ProjectShares(1, wait_s=0)
            full.take(self.key.project)
            with patch.object(http, "resource_shares", lambda: full):
                answers = [await client.get(f"/v1/{path}") for path in lists]
        self.assertEqual([answer.status_code for answer in answers], [429] * len(lists))

    async def test_long_lists_are_encoded_beside_the_event_loop(self) -> None:
        threads = list[threading.Thread]()

        def redact(body: str, _include: object) -> bytes:
            threads.append(threading.current_thread())
            return body.encode()

        async with self.serving() as client:
            made = await self.ask(client, "post", "", items=[user("x" * 40_000), user("y" * 40_000)])
            with patch.object(item_serializer, "redact_images", redact):
                listed = await self.listed(client, made["id"])
        self.assertEqual([len(item["content"][0]["text"]) for item in listed], [40_000, 40_000])
        self.assertEqual((len(threads), threading.main_thread() in threads), (2, False))
