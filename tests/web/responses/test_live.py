"""Pages of running responses with a replay engine: live events, cancellation, prompt, validation and statistics."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import orjson
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import AsyncClient
from django.utils import timezone

from responses_app.engines.replay.engine import Recording, Tokens
from responses_app.engines.replay.tape import Delay, Hold
from responses_app.models import Membership, Response
from responses_app.wire import allowed_stream
from responses_app.wire.sse import StreamInterrupted
from tests.support.api.case import THOUGHT, TOOL, WEATHER, ApiCase, first_event, record_text, sse, tokens


def slowly(text: str, seconds: float = 0.03) -> Recording:
    """The text, a token at a time, with a pause behind each."""
    steps = [step for one in tokens(text) for step in (Tokens([one]), Delay(seconds))]
    return Recording(steps)


class LiveTest(ApiCase):
    """Pages of running responses, seen by a signed-in superuser."""

    async def person(self) -> AsyncClient:
        """Return the signed-in client."""
        client = AsyncClient()
        await client.aforce_login(await User.objects.acreate_superuser("root"))
        return client

    async def text(self, person: AsyncClient, url: str) -> str:
        """A page."""
        answer = await person.get(url)
        self.assertEqual(answer.status_code, 200, url)
        return str(answer.content.decode())

    async def collected(self, answer: Any) -> bytes:
        """All that a stream says."""
        return b"".join([part async for part in answer.streaming_content])

    async def test_a_page_follows_a_run_and_late_comers_see_all_of_it(self) -> None:
        person = await self.person()
        gate = Path(self.enterContext(TemporaryDirectory()), "gate")
        release, text = gate.touch, tokens(THOUGHT)
        async with self.serving(Recording([Tokens(text[:5]), Hold(gate), Tokens(text[5:])])) as client:
            post = await self.post(client, stream=True)
            parts = aiter(post.streaming_content)
            first = await anext(parts)
            uid = first_event(first)["response"]["id"]
            self.assertIn('id="running"', await self.text(person, f"/responses/{uid}"))
            live = await person.get(f"/responses/{uid}/live")
            late = await person.get(f"/responses/{uid}/live?after=2")
            release()
            whole = first + b"".join([part async for part in parts])
            result = sse(await self.collected(live))
            self.assertEqual([event["type"] for event in result], [event["type"] for event in sse(whole)])
            self.assertEqual(next(event["sequence_number"] for event in sse(await self.collected(late))), 3)
            self.assertNotIn('id="running"', await self.text(person, f"/responses/{uid}"))

    async def test_live_stream_ends_without_access(self) -> None:
        viewer = await User.objects.acreate_user("viewer")
        rights: list[Callable[[], object]] = [
            lambda: User.objects.filter(pk=viewer.pk).update(is_active=False),
            lambda: Membership.objects.filter(user=viewer).delete(),
            lambda: Session.objects.all().delete(),
        ]
        self.enterContext(patch.object(allowed_stream, "CHECK_EVERY_S", 0))
        for number, take_away in enumerate(rights):
            with self.subTest(number):
                await User.objects.filter(pk=viewer.pk).aupdate(is_active=True)
                await Membership.objects.aget_or_create(user=viewer, project=self.key.project)
                person = AsyncClient()
                await person.aforce_login(await User.objects.aget(pk=viewer.pk))
                gate = Path(self.enterContext(TemporaryDirectory()), "gate")
                release, text = gate.touch, tokens(THOUGHT)
                async with self.serving(Recording([Tokens(text[:5]), Hold(gate), Tokens(text[5:])])) as client:
                    post = await self.post(client, stream=True)
                    parts = aiter(post.streaming_content)
                    uid = first_event(await anext(parts))["response"]["id"]
                    answer: Any = await person.get(f"/responses/{uid}/live")
                    live = aiter(answer.streaming_content)
                    self.assertIn("response.created", (await anext(live)).decode())
                    await sync_to_async(take_away)()
                    release()
                    with self.assertRaises(StreamInterrupted):
                        while True:
                            self.assertNotIn(b"response.completed", await anext(live))
                    # The stream of the request itself goes on.
                    self.assertIn(b"response.completed", b"".join([part async for part in parts]))

    async def test_stream_of_a_get_ends_with_its_key(self) -> None:
        self.enterContext(patch.object(allowed_stream, "CHECK_EVERY_S", 0))
        gate = Path(self.enterContext(TemporaryDirectory()), "gate")
        release, text = gate.touch, tokens(THOUGHT)
        async with self.serving(Recording([Tokens(text[:5]), Hold(gate), Tokens(text[5:])])) as client:
            post = await self.post(client, stream=True)
            parts = aiter(post.streaming_content)
            uid = first_event(await anext(parts))["response"]["id"]
            answer: Any = await client.get(f"/v1/responses/{uid}?stream=true")
            replay = aiter(answer.streaming_content)
            self.assertIn("response.created", (await anext(replay)).decode())
            await self.limit(revoked_at=timezone.now())
            release()
            with self.assertRaises(StreamInterrupted):
                while True:
                    self.assertNotIn(b"response.completed", await anext(replay))
            self.assertIn(b"response.completed", b"".join([part async for part in parts]))

    async def test_validation_prompt_and_statistics_of_the_list(self) -> None:
        person = await self.person()
        async with self.serving(record_text(THOUGHT), record_text(WEATHER)) as client:
            made = await self.made(client)
            uid = made["id"]
            verdict = await self.text(person, f"/responses/{uid}/check")
            self.assertIn("events valid", verdict)
            self.assertIn("reproduces the final response", verdict)
            prompt = await self.text(person, f"/responses/{uid}/prompt")
            self.assertIn("<mark>&lt;|start|&gt;</mark>user<mark>&lt;|message|&gt;</mark>Hi<mark>&lt;|end|&gt;</mark>", prompt)
            self.assertIn("Hello there!", await self.text(person, f"/responses/{uid}"))
            wire = await self.text(person, f"/responses/{uid}/wire")
            self.assertIn("&quot;text&quot;: &quot;Hi&quot;", wire)
            await self.made(client, tools=[TOOL])
        row = await Response.objects.aget(uid=uid)
        self.assertIsNotNone(row.time_to_first_token_ms)
        called = await Response.objects.exclude(uid=uid).aget()
        self.assertEqual((row.tools, called.tools), ([], ["get_weather"]))

    async def test_a_run_is_stopped_and_deleted_by_a_person_as_by_the_api(self) -> None:
        person = await self.person()
        async with self.serving(slowly("<|channel|>final<|message|>" + "word " * 400)) as client:
            post = await self.post(client, stream=True, background=True)
            uid = first_event(await anext(aiter(post.streaming_content)))["response"]["id"]
            self.assertEqual((await person.get(f"/responses/{uid}/cancel")).status_code, 405)
            answer = await person.post(f"/responses/{uid}/cancel")
            self.assertEqual(answer["Location"], f"/responses/{uid}")
            self.assertEqual((await Response.objects.aget(uid=uid)).status, "cancelled")
            await person.post(f"/responses/{uid}/delete")
            self.assertFalse(await sync_to_async(Response.objects.filter(uid=uid).exists)())

    async def test_an_export_has_running_responses_with_the_items_that_are_done(self) -> None:
        person = await self.person()
        gate = Path(self.enterContext(TemporaryDirectory()), "gate")
        release = gate.touch
        async with self.serving(record_text(THOUGHT), Recording([*record_text(THOUGHT).steps[:5], Hold(gate)])) as client:
            ended = await self.made(client)
            running = (await self.made(client, background=True))["id"]
            answer = await person.post("/responses/selection", {"action": "export", "uid": [ended["id"], running]})
            first, second = map(orjson.loads, (await self.collected(answer)).splitlines())
            self.assertEqual(first, ended)
            self.assertEqual((second["id"], second["object"]), (running, "response"))
            self.assertIn(second["status"], ("queued", "in_progress"))
            release()
