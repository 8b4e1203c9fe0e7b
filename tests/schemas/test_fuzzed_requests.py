"""Good requests with a few changes: every answer has a proper shape, none is a 500, and a refused request leaves no row.

Hypothesis keeps the requests that failed in `.hypothesis/examples` and tries them first. `FUZZ_EXAMPLES` sets their number.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis.extra.django import TestCase as ExampleCase

from responses_app.access import api_keys
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Conversation, Event, Item, Response
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from tests.support.api.case import HARMONY, HELLO, ApiCase, KeyedClient, record_text
from tests.support.api.changed_requests import CONVERSATION, Post, Read, posts, reads
from tests.support.hypothesis_profile import examples

# On a busy machine an example has taken half a second.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", examples(200)))
SETTINGS: dict[str, Any] = {"suppress_health_check": list(HealthCheck)}
MODELS = (Response, Item, Event, Conversation)


@dataclass(slots=True)
class Ids:
    """The ids of what is stored for an example, in place of those that a strategy writes."""

    response: str = "resp_of_test"
    conversation: str = "conv_of_test"

    def in_text(self, text: str) -> str:
        """Put the ids into a path or a body."""
        return text.replace("resp_of_test", self.response).replace("conv_of_test", self.conversation)


class FuzzedRequestsTest(ExampleCase, ApiCase):
    """With an engine that has an answer to every request, and a transaction for each example."""

    @pytest.mark.slow
    @settings(max_examples=EXAMPLES, **SETTINGS)
    @given(posts())
    def test_changed_posts_are_answered_properly(self, post: Post) -> None:
        async_to_sync(self.check_post)(post)

    @settings(max_examples=EXAMPLES // 4, **SETTINGS)
    @given(reads())
    def test_odd_reads_are_answered_properly(self, read: Read) -> None:
        async_to_sync(self.check_read)(read)

    async def check_post(self, post: Post) -> None:
        """Send a POST, whose answer must be proper."""
        async with self.answering(post.path.encode() + post.body) as (client, ids):
            path, body = ids.in_text(post.path), ids.in_text(post.body.decode("latin1")).encode("latin1")
            before = await self.count_rows()
            response = await client.post(path, body, content_type="application/json")
            await self.check_answer(response)
            if response.status_code != 200:
                self.assertEqual(await self.count_rows(), before)

    async def check_read(self, read: Read) -> None:
        """Send a GET and a request that changes nothing, whose answers must be proper."""
        async with self.answering(read.path.encode()) as (client, ids):
            await self.check_answer(await client.get(ids.in_text(read.path), read.query))
            await self.check_answer(await client.generic(read.method, read.other_path, b"{}", "application/json"))

    @asynccontextmanager
    async def answering(self, request: bytes) -> AsyncIterator[tuple[AsyncClient, Ids]]:
        """Run a manager, and store the response and the conversation that a request refers to."""
        api_keys.clear_cache()
        engine = ReplayEngine([record_text(HELLO, size=9)], loop=True)
        current = RunManager({"m": ServedModel("m", engine, "", {}, dialect=HARMONY)})
        manager.set_current(current)
        try:
            client = KeyedClient(self.secret)
            yield client, await self.store(client, request)
        finally:
            await current.close()
            manager.set_current(None)

    async def store(self, client: AsyncClient, request: bytes) -> Ids:
        """Store what a request refers to."""
        ids = Ids()
        if b"resp_of_test" in request:
            ids.response = (await self.made(client))["id"]
        if b"conv_of_test" in request:
            made = await client.post("/v1/conversations", orjson.dumps(CONVERSATION), content_type="application/json")
            ids.conversation = orjson.loads(made.content)["id"]
        return ids

    async def check_answer(self, response: Any) -> None:
        """Check the shape of an answer, which is no failure of the server."""
        self.assertLess(response.status_code, 500, "" if response.streaming else response.content)
        if response.streaming:
            raw = b"".join([part async for part in response.streaming_content])
            self.assertTrue(raw.endswith(b"data: [DONE]\n\n"), raw[-300:])
        elif response.status_code != 200:
            self.assertEqual(set(orjson.loads(response.content)["error"]), {"message", "type", "param", "code"})

    async def count_rows(self) -> list[int]:
        """Count the rows of a response, its items and events, and of conversations."""
        return [await model.objects.acount() for model in MODELS]
