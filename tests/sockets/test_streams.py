"""Named streams of a WebSocket: order, concurrency, limits, and the end of a connection."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any
from unittest.mock import patch

import pytest
from channels.testing import WebsocketCommunicator
from django.db import OperationalError
from django.test import override_settings

from responses_app.access import api_keys
from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import ApiKey
from responses_app.runs import manager
from responses_app.sockets import streams
from responses_app.sockets.routing import application
from tests.support.api.case import HELLO, record_text, tokens
from tests.support.api.websocket_case import TERMINAL, SocketCase, SocketClient, assert_valid, error
from tests.support.engines.held_engine import HeldEngine
from tests.support.waiting import eventually

# Seconds that a connection may be open.
AGE_S = 3


def slow(text: str, pause: float = 0.01) -> Recording:
    """Record a generation with a pause of `pause` seconds after each token."""
    return Recording([step for token in tokens(text) for step in (Tokens([token]), Delay(pause))])


async def events_by_stream(socket: SocketClient, count: int) -> dict[str | None, list[list[dict[str, Any]]]]:
    """Receive the events of `count` responses, grouped by `stream_id` and response."""
    events_of_streams: dict[str | None, list[list[dict[str, Any]]]] = defaultdict(list)
    while count:
        event = await socket.receive()
        stream_id = events_of_streams[event.get("stream_id")]
        if event["type"] == "response.created":
            stream_id.append([])
        stream_id[-1].append(event)
        count -= event["type"] in TERMINAL
    return events_of_streams


class StreamsTest(SocketCase):
    async def test_streams_run_side_by_side_and_each_in_order(self) -> None:
        async with self.serving(*[slow(HELLO) for _ in range(6)]), self.socket() as socket:
            for stream_id in ("a", "b", None, "a", "b", None):
                await socket.create(**({"stream_id": stream_id} if stream_id else {}))
            events_of_streams = await events_by_stream(socket, 6)
            self.assertEqual({stream_id: len(made) for stream_id, made in events_of_streams.items()}, {"a": 2, "b": 2, None: 2})
            for stream_id, made in events_of_streams.items():
                for events in made:
                    assert_valid(events, stream_id)

    async def test_events_of_streams_interleave(self) -> None:
        async with self.serving(slow(HELLO), slow(HELLO)), self.socket() as socket:
            await socket.create(stream_id="a")
            await socket.create(stream_id="b")
            ends, stream_ids = 0, []
            while ends < 2:
                event = await socket.receive()
                stream_ids.append(event["stream_id"])
                ends += event["type"] in TERMINAL
            self.assertNotEqual(stream_ids, sorted(stream_ids))

    async def test_a_wrong_request_is_answered_in_its_turn(self) -> None:
        async with self.serving(slow(HELLO)), self.socket() as socket:
            await socket.create(stream_id="a")
            await socket.create(stream_id="a", temperature=9)
            assert_valid(await socket.receive_response("a"), "a")
            self.assertEqual(error(await socket.receive())["param"], "temperature")

    async def test_the_seventeenth_waits(self) -> None:
        async with self.serving(*[slow(HELLO) for _ in range(20)]), self.socket() as socket:
            most = 0
            for number in range(20):
                await socket.create(stream_id=f"stream_id-{number}")
            stream_ids: set[str] = set()
            while len(stream_ids) < 20:
                event = await socket.receive()
                most = max(most, len(self.hub.runs))
                if event["type"] in TERMINAL:
                    stream_ids.add(event["stream_id"])
            self.assertEqual(most, streams.MAX_RUNNING_RESPONSES)

    async def test_the_thirty_third_name_is_refused_and_the_others_go_on(self) -> None:
        async with self.serving(*[record_text(HELLO) for _ in range(34)]), self.socket() as socket:
            for number in range(32):
                await socket.create_response(stream_id=f"{number}")
            refused = await socket.create_rejected(stream_id="one-more")
            self.assertEqual((refused["status"], refused["code"]), (400, "websocket_stream_limit_reached"))
            await socket.create_response(stream_id="7")
            await socket.create_response()

    async def test_too_many_that_wait_are_refused_at_once(self) -> None:
        before, streams.MAX_QUEUED_REQUESTS = streams.MAX_QUEUED_REQUESTS, 2
        try:
            self.engine = engine = HeldEngine()
            async with self.serving(*[record_text(HELLO) for _ in range(3)]), self.socket() as socket:
                await socket.create()
                self.assertEqual((await socket.receive())["type"], "response.created")
                for _ in range(3):
                    await socket.create()
                ends, refused = 0, []
                while ends < 3:
                    event = await socket.receive()
                    ends += event["type"] in TERMINAL
                    if event["type"] == "error":
                        refused.append(event["status"])
                        engine.gate.set()
                self.assertEqual(refused, [429])
        finally:
            streams.MAX_QUEUED_REQUESTS = before


class EndsTest(SocketCase):
    async def test_a_client_that_goes_takes_all_its_responses_with_it(self) -> None:
        async with self.serving(*[slow(HELLO, 600) for _ in range(3)]) as client:
            async with self.socket() as socket:
                for stream_id in ("a", "b"):
                    await socket.create(stream_id=stream_id)
                await socket.create(store=False)
                uids: dict[str | None, str] = {}
                while len(uids) < 3:
                    event = await socket.receive()
                    if event["type"] == "response.created":
                        uids[event.get("stream_id")] = event["response"]["id"]
            await eventually(lambda: not self.hub.runs)
            self.assertEqual(set(self.engine.aborted), {request.id for request in self.engine.requests})
            for stream_id in ("a", "b"):
                with self.subTest(stream_id=stream_id):
                    got = await client.get(f"/v1/responses/{uids[stream_id]}")
                    self.assertEqual(got.json()["status"], "cancelled")

    async def test_a_response_finishes_after_the_client_left_if_the_settings_require_it(self) -> None:
        with override_settings(RESPONSES_FINISH_ON_DISCONNECT=True):
            async with self.serving(slow(HELLO, 0.05)) as client:
                async with self.socket() as socket:
                    await socket.create()
                    uid = (await socket.receive())["response"]["id"]
                await eventually(lambda: not self.hub.runs)
                self.assertEqual((await client.get(f"/v1/responses/{uid}")).json()["status"], "completed")

    @pytest.mark.slow
    async def test_an_expired_connection_ends_its_responses_and_closes_with_an_error(self) -> None:
        with override_settings(RESPONSES_SOCKET_AGE=AGE_S):
            self.engine = engine = HeldEngine()
            async with self.serving(record_text(HELLO)), self.socket() as socket:
                # Both are timers of one event loop: this one comes behind the end of the connection's age.
                asyncio.get_running_loop().call_later(AGE_S + 0.5, engine.gate.set)
                await socket.create(stream_id="a")
                events = [await socket.receive()]
                async with asyncio.timeout(60):
                    while events[-1]["type"] not in TERMINAL:
                        events.append(await socket.receive())
                assert_valid(events, "a")
                details = error(await socket.receive())
                self.assertEqual((details["status"], details["code"]), (400, "websocket_connection_limit_reached"))
                self.assertEqual(await socket.close_code(), 1000)

    @pytest.mark.slow
    async def test_at_its_age_what_waits_is_refused(self) -> None:
        with override_settings(RESPONSES_SOCKET_AGE=AGE_S):
            self.engine = engine = HeldEngine()
            async with self.serving(record_text(HELLO)), self.socket() as socket:
                # Both are timers of one event loop: this one comes behind the end of the connection's age.
                asyncio.get_running_loop().call_later(AGE_S + 0.5, engine.gate.set)
                await socket.create()
                await socket.create()
                assert_valid(await socket.receive_response())
                codes = [error(await socket.receive())["code"] for _ in range(2)]
                self.assertEqual(codes, ["websocket_connection_limit_reached"] * 2)
                self.assertEqual(await socket.close_code(), 1000)

    async def test_stopping_server_ends_running_responses_then_closes_sockets(self) -> None:
        async with self.serving(slow(HELLO, 0.02)), self.socket() as busy, self.socket() as idle:
            await busy.create()
            await busy.create()
            self.assertEqual((await busy.receive())["type"], "response.created")
            draining = asyncio.create_task(manager.current().drain(60))
            self.assertEqual(await idle.close_code(), 1001)
            self.assertEqual((await busy.receive_response())[-1]["type"], "response.completed")
            self.assertEqual(error((await busy.receive_response())[-1])["status"], 503)
            self.assertEqual(await busy.close_code(), 1001)
            await draining

    async def test_a_response_that_has_to_be_handed_over_ends_the_connection(self) -> None:
        async with self.serving(slow(HELLO, 600)), self.socket() as socket:
            await socket.create()
            self.assertEqual((await socket.receive())["type"], "response.created")
            await manager.current().drain(0)
            while (message := await socket.socket.receive_output(60))["type"] != "websocket.close":
                self.assertNotIn("response.completed", message["text"])
            self.assertEqual(message["code"], 1001)

    async def test_unreadable_log_of_a_moved_response_closes_the_connection(self) -> None:
        gone = patch("responses_app.runs.recover.log_follower.reader.stored_pages", side_effect=OperationalError("gone"))
        async with self.serving(slow(HELLO, 600)), self.socket() as socket:
            await socket.create()
            self.assertEqual((await socket.receive())["type"], "response.created")
            with gone, patch("responses_app.runs.recover.log_follower.LOST_LIMIT", 0.3):
                (run,) = self.hub.runs.values()
                # As the watch does when another process has taken it over.
                run.hand_over()
                while (message := await socket.socket.receive_output(60))["type"] != "websocket.close":
                    self.assertNotIn("response.completed", message["text"])
            self.assertEqual(message["code"], 1011)

    async def test_a_key_that_is_taken_back_ends_it(self) -> None:
        async with self.serving(record_text(HELLO)), self.socket() as socket:
            await socket.create_response()
            await ApiKey.objects.filter(pk=self.key.pk).adelete()
            api_keys.clear_cache()
            self.assertEqual((await socket.create_rejected())["status"], 401)
            self.assertEqual(await socket.close_code(), 1008)

    async def test_no_more_are_opened_than_may_be(self) -> None:
        with override_settings(RESPONSES_MAX_SOCKETS=1):
            async with self.serving(), self.socket():
                headers = [(b"authorization", f"Bearer {self.secret}".encode())]
                another = WebsocketCommunicator(application, "/v1/responses", headers)
                self.assertEqual((await another.connect())[0], False)
            async with self.socket():
                pass
