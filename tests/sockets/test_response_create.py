"""One response after the other on the default lane: the events of SSE, one JSON object a frame."""

from __future__ import annotations

from typing import Any

import orjson
from django.test import override_settings

from responses_app.models import Response, StoredRequest
from responses_app.runs.create_request import CreateRequest
from tests.support.api.case import HELLO, THOUGHT, TOOL, WEATHER, said
from tests.support.api.websocket_case import SocketCase, error, judge
from tests.support.dialects.large_grammars import LARGE

DOUBLING = {"type": "grammar", "syntax": "lark", "definition": LARGE["terminals that double"][0]}


def bare(value: Any) -> Any:
    """Without what no two responses share."""
    if isinstance(value, dict):
        hidden = ("id", "item_id", "call_id", "created_at", "completed_at", "obfuscation", "previous_response_id")
        return {key: bare(one) for key, one in value.items() if key not in hidden}
    return [bare(one) for one in value] if isinstance(value, list) else value


class CreateTest(SocketCase):
    async def test_the_events_are_those_of_sse(self) -> None:
        async with self.serving(said(THOUGHT), said(THOUGHT)) as client, self.socket() as socket:
            streamed = await self.stream(client)
            await socket.create()
            events = await socket.turn()
            judge(events)
            self.assertEqual(bare(events), bare(streamed))
            self.assertTrue(all("obfuscation" in event for event in events if event["type"].endswith(".delta")))

    async def test_what_was_told_is_what_is_kept_and_replayed(self) -> None:
        async with self.serving(said(THOUGHT)) as client, self.socket() as socket:
            await socket.create(stream_options={"include_obfuscation": False}, stream_id="a")
            events = await socket.turn("a")
            response = events[-1]["response"]
            got = await client.get(f"/v1/responses/{response['id']}")
            self.assertEqual(orjson.loads(got.content), response)
            replayed = await self.read(
                await client.get(f"/v1/responses/{response['id']}?stream=true&include_obfuscation=false")
            )
            self.assertEqual([{**event, "stream_id": "a"} for event in replayed], events)

    async def test_responses_are_stored_with_the_id_of_the_request_that_opened_the_connection(self) -> None:
        async with self.serving(said(HELLO), said(HELLO)), self.socket() as socket:
            made = [await socket.made(), await socket.made()]
        found = Response.objects.filter(uid__in=[one["id"] for one in made]).values_list("request_id", flat=True)
        ids = {one async for one in found}
        self.assertEqual(len(ids), 1)
        self.assertRegex(ids.pop(), r"^req_[0-9a-f]{48}$")

    async def test_two_that_are_sent_at_once_are_made_one_after_the_other(self) -> None:
        async with self.serving(said(HELLO), said(THOUGHT)), self.socket() as socket:
            await socket.create()
            await socket.create()
            first, second = await socket.turn(), await socket.turn()
            judge(first)
            judge(second)
            self.assertNotEqual(first[0]["response"]["id"], second[0]["response"]["id"])

    async def test_a_client_that_speaks_open_responses_is_told_in_its_words(self) -> None:
        async with self.serving(said(THOUGHT)), self.socket("/openresponses/v1/responses") as socket:
            await socket.create()
            told = {event["type"] for event in await socket.turn()}
            self.assertIn("response.reasoning.delta", told)
            self.assertNotIn("response.reasoning_text.delta", told)

    async def test_stream_says_nothing_and_background_is_refused(self) -> None:
        async with self.serving(said(HELLO), said(HELLO)), self.socket() as socket:
            bodies: list[dict[str, Any]] = [{"stream": True}, {"stream": False, "background": False, "generate": True}]
            for fields in bodies:
                self.assertEqual((await socket.made(**fields))["status"], "completed")
            refused = await socket.refused(background=True)
            self.assertEqual(
                (refused["status"], refused["code"], refused["param"]), (400, "unsupported_parameter", "background")
            )

    async def test_what_is_wrong_with_a_request_is_told_as_over_http_and_the_socket_goes_on(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"model": "none"},
            {"temperature": "hot"},
            {"surprise": 1},
            {"tools": [{"type": "web"}]},
            {"tools": [{"type": "custom", "name": "c", "format": DOUBLING}]},
            {"previous_response_id": "resp_missing"},
            {"conversation": "conv_missing"},
            {"input": None},
            {"input": [{"type": "message", "role": "user", "content": [{"type": "input_text"}]}]},
        ]
        async with self.serving(said(HELLO)) as client, self.socket() as socket:
            for fields in wrong:
                over_http = await self.post(client, **fields)
                await socket.say(**{"type": "response.create", "model": "m", "input": "Hi", **fields})
                (event,) = await socket.turn()
                told = error(event)
                expected = orjson.loads(over_http.content)["error"]
                self.assertEqual(told.pop("status"), over_http.status_code)
                self.assertEqual(told, {**expected, "code": expected["code"] or expected["type"]})
            self.assertEqual((await socket.made())["status"], "completed")

    async def test_frames_that_say_nothing_are_answered_and_the_socket_goes_on(self) -> None:
        wrong = {
            "{": ("invalid_json", None),
            "[]": ("invalid_json", None),
            '"response.create"': ("invalid_json", None),
            "{}": ("missing_required_parameter", "type"),
            '{"type": 7}': ("invalid_type", "type"),
            '{"type": "response.inject"}': ("invalid_value", "type"),
            '{"type": "response.steer"}': ("missing_required_parameter", "previous_response_id"),
            '{"type": "response.create", "stream_id": ""}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": 7}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": "a b"}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "stream_id": "é"}': ("invalid_stream_id", "stream_id"),
            f'{{"type": "response.create", "stream_id": "{"a" * 257}"}}': ("invalid_stream_id", "stream_id"),
            '{"type": "response.create", "model": "m", "input": "Hi", "generate": "no"}': ("invalid_type", "generate"),
        }
        async with self.serving(said(HELLO)), self.socket() as socket:
            for text, (code, param) in wrong.items():
                await socket.socket.send_to(text_data=text)
                told = error(await socket.hear())
                self.assertEqual((told["status"], told["code"], told["param"]), (400, code, param), text)
            await socket.socket.send_to(bytes_data=b"{}")
            self.assertEqual(error(await socket.hear())["code"], "invalid_json")
            self.assertEqual((await socket.made())["status"], "completed")

    async def test_a_failure_is_told_by_its_last_event_alone_also_in_a_replay(self) -> None:
        broken = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": <|call|>'
        async with self.serving(said(broken)) as client, self.socket() as socket:
            await socket.create(tools=[TOOL])
            events = await socket.turn()
            self.assertEqual(events[-1]["type"], "response.failed")
            judge(events)
            uid = events[-1]["response"]["id"]
            replayed = await self.read(await client.get(f"/v1/responses/{uid}?stream=true"))
            self.assertNotIn("error", {event["type"] for event in [*events, *replayed]})

    async def test_whoever_takes_it_over_knows_how_it_was_asked(self) -> None:
        async with self.serving(said(HELLO)), self.socket() as socket:
            for generate in (True, False):
                made = await socket.made(generate=generate)
                prompt = await StoredRequest.objects.aget(response__uid=made["id"])
                order = CreateRequest.load(prompt.create_request, [])
                self.assertEqual((order.emit_error_event, order.generate, order.stream), (False, generate, True))

    async def test_a_tool_is_called_and_answered(self) -> None:
        async with self.serving(said(WEATHER), said(HELLO)), self.socket() as socket:
            first = await socket.made(tools=[TOOL])
            call = first["output"][-1]
            output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
            second = await socket.made([output], tools=[TOOL], previous_response_id=first["id"])
            self.assertEqual(second["output"][-1]["content"][0]["text"], "Hello there!")
            self.assertEqual(second["previous_response_id"], first["id"])

    async def test_what_cannot_be_kept_is_not_begun(self) -> None:
        with override_settings(RESPONSES_MAX_CONCURRENT=0):
            async with self.serving(), self.socket() as socket:
                self.assertEqual((await socket.refused())["status"], 429)
        self.assertEqual(await Response.objects.acount(), 0)
