"""Shares of projects in lists, in requests to files, containers and vector stores, and in the use of the storage."""

from __future__ import annotations

import asyncio
import threading
from unittest.mock import patch

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.test import override_settings

from responses_app.api import http, storage_share
from responses_app.api.storage_share import call_in_thread, storage_shares
from responses_app.errors import RateLimited
from responses_app.models import ApiKey
from responses_app.store.files import storage_calls
from responses_app.utils.shares import ProjectShares
from responses_app.wire import item_serializer
from tests.support.api.case import ApiCase
from tests.support.api.conversation_case import ConversationCase, user
from tests.support.waiting import eventually, run_ready_tasks

NEVER_SLOW_S = 60.0


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


@pytest.mark.django_db(transaction=True)
@override_settings(RESPONSES_RESOURCE_PARALLEL=1)
def test_slow_call_of_the_storage_holds_no_place_of_reads_and_no_connection() -> None:
    ready, gate = threading.Event(), threading.Event()

    def work() -> tuple[bool, bool]:
        ready.wait()
        connection.ensure_connection()
        with patch.object(storage_calls, "SLOW_S", NEVER_SLOW_S):
            storage_calls.call(int)
        keeps_in_fast_call = connection.connection is not None
        storage_calls.call(gate.wait)
        return keeps_in_fast_call, connection.connection is not None

    async def main() -> None:
        shares = http.resource_shares()
        async with storage_shares().place("p"):
            request = asyncio.ensure_future(call_in_thread("p", work))
            await run_ready_tasks(1)
            assert not shares.has_free_place
            ready.set()
            await eventually(lambda: shares.has_free_place)
            async with shares.place("p"):
                gate.set()
                assert await request == (True, False)
        assert shares.has_free_place

    asyncio.run(main())


@override_settings(RESPONSES_RESOURCE_PARALLEL=1)
def test_call_of_a_client_that_disconnects_keeps_its_places_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_share, "PLACES", 1)
    ready, gate = threading.Event(), threading.Event()

    def work() -> None:
        ready.set()
        gate.wait()

    async def main() -> None:
        async def request() -> None:
            async with storage_shares().place("p"):
                await call_in_thread("p", work)

        task = asyncio.ensure_future(request())
        await eventually(ready.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        both = storage_shares(), http.resource_shares()
        assert not any(shares.has_free_place for shares in both)
        gate.set()
        await eventually(lambda: all(shares.has_free_place for shares in both))

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


class StorageRoutesTest(ApiCase):
    """Routes that use the storage, and routes that read rows."""

    async def test_rows_are_read_while_the_project_has_its_share_of_the_storage(self) -> None:
        full = ProjectShares(1, wait_s=0)
        full.take(self.key.project)
        with patch.object(storage_share, "shares_of", lambda *_, **__: full):
            async with self.serving() as client:
                form = {"file": SimpleUploadedFile("a.txt", b"Oslo")}
                answers = [await client.post(f"/v1/{path}", form) for path in ("files", "containers/cntr_1/files")]
                contents = "files/file-1/content", "containers/cntr_1/files/cfile_1/content"
                answers += [await client.get(f"/v1/{path}") for path in contents]
                rows = "files/file-1", "containers/cntr_1", "containers/cntr_1/files/cfile_1"
                answers += [await client.delete(f"/v1/{path}") for path in rows]
                lists = [await client.get(f"/v1/{path}") for path in ("files", "containers", *rows)]
        self.assertEqual([answer.status_code for answer in answers], [429] * len(answers))
        self.assertEqual([answer.status_code for answer in lists], [200, 200, 404, 404, 404])
