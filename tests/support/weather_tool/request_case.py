"""Requests with the imaginary server tool. `tests/tools/test_imaginary_tool.py` runs these tests in a server that has the tool."""

from __future__ import annotations

from typing import Any

import orjson
from django.contrib.auth.models import User
from django.test import AsyncClient

from responses_app.access.tool_access import known_names
from responses_app.engines.replay.engine import Recording
from responses_app.protocol.conformance import StreamValidator
from responses_app.protocol.reducer import fold
from tests.support.api.case import ApiCase, bare, record_text
from tests.support.runs.server_tools import prompt_text
from tests.support.weather_tool.item_spec import SPEC

TOOL = {"type": "weather", "station": "north"}
PLACE = '{"place":"Oslo"}'
CALL = f"<|channel|>commentary to=functions.measure <|constrain|>json<|message|>{PLACE}<|call|>"
ANSWER = "<|channel|>final<|message|>It is cold.<|return|>"
READ = "Oslo has 4.5 degrees."
STAGES = ["in_progress", "measuring", "completed"]


def record(text: str, *shown: str) -> Recording:
    """Return a recording for a prompt that contains the texts `shown`."""
    return record_text(text, size=4, match=lambda prompt: all(one in prompt_text(prompt) for one in shown))


class WeatherRequestTest(ApiCase):
    """Requests of a client, and the pages of the operator."""

    def judge(self, events: list[dict[str, Any]], after: int = -1) -> list[dict[str, Any]]:
        """Return `events`, which break no rule of the grammar with the family of the tool."""
        del after
        check = StreamValidator(spec=SPEC)
        broken = [violation for event in events for violation in check.feed(event)] + check.close()
        self.assertEqual(broken, [])
        return events

    async def test_call_runs_and_every_projection_of_the_log_shows_it(self) -> None:
        """Drive a request from its stream over the stored items to the pages."""
        lines = record(CALL, "measure"), record(ANSWER, READ), record(ANSWER, READ, "Go on.")
        async with self.serving(*lines) as client:
            events = bare(await self.stream(client, tools=[TOOL]))
            uid = events[0]["response"]["id"]
            replayed = bare(await self.read(await client.get(f"/v1/responses/{uid}?stream=true")))
            got = orjson.loads((await client.get(f"/v1/responses/{uid}")).content)
            later = await self.made(client, tools=[TOOL], previous_response_id=uid, input="Go on.")
        kinds = [event["type"] for event in events if event["type"].startswith("response.weather_call.")]
        self.assertEqual(kinds, [f"response.weather_call.{stage}" for stage in STAGES])
        self.assertEqual(replayed, events)
        self.assertEqual(fold(events), events[-1]["response"])
        self.assertEqual(got, events[-1]["response"])
        self.assertEqual(got["tools"], [TOOL])
        call, message = got["output"]
        shown = {"type": "weather_call", "status": "completed", "station": "north", "place": PLACE, "degrees": 4.5}
        self.assertEqual({key: value for key, value in call.items() if key != "id"}, shown)
        self.assertTrue(call["id"].startswith("wc_"))
        self.assertEqual(message["content"][0]["text"], "It is cold.")
        self.assertEqual(later["status"], "completed")
        await self.check_pages(uid)

    async def check_pages(self, uid: str) -> None:
        """Check the call on the page of the response, and its events."""
        pages = AsyncClient()
        await pages.aforce_login(await User.objects.acreate_superuser("root", "", "x"))
        page = (await pages.get(f"/responses/{uid}")).content.decode()
        for text in ("weather_call", "Oslo", "4.5", READ):
            self.assertIn(text, page)
        self.assertIn("weather_call.measuring", (await pages.get(f"/responses/{uid}/events")).content.decode())

    async def test_call_in_the_input_is_read_by_the_model(self) -> None:
        """Send a call as history, without a stored response."""
        call = {"type": "weather_call", "station": "north", "place": PLACE, "degrees": 4.5}
        async with self.serving(record(ANSWER, "measure", PLACE, '"degrees": 4.5')) as client:
            made = await self.made(client, input=[call, {"role": "user", "content": "Is it cold?"}], store=False)
        self.assertEqual(made["status"], "completed")

    async def test_invalid_declaration_is_refused_by_path(self) -> None:
        """Refuse a declaration with an unknown field, and a second declaration."""
        async with self.serving() as client:
            self.refused(await self.post(client, tools=[{**TOOL, "unit": "K"}]), 400, "unknown_parameter", "tools[0].unit")
            self.refused(await self.post(client, tools=[TOOL, TOOL]), 400, "invalid_value", "tools[1].type")

    async def test_key_is_bound_to_its_tools(self) -> None:
        """Refuse the tool for a key that may use no tool."""
        self.assertIn("weather", known_names())
        self.key.allowed_tools = ["none"]
        await self.key.asave()
        async with self.serving() as client:
            self.refused(await self.post(client, tools=[TOOL]), 403, "tool_not_allowed", "tools[0]")
