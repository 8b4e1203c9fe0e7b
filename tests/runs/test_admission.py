"""RESPONSES_MAX_CONCURRENT holds for requests that come at once, and every way out of a request gives its place back."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.test import AsyncClient, override_settings
from hypothesis import example, given, settings
from hypothesis import strategies as st

from responses_app.engines.replay.engine import Delay, Fault, Recording, ReplayEngine, Tokens
from responses_app.errors import ApiError, RateLimited
from responses_app.models import Lease
from responses_app.runs import manager
from responses_app.runs.admission import Kind
from responses_app.runs.ids import new_id
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.runs.prepare import long_work
from responses_app.store.content import history
from tests.support.api.case import HARMONY, HELLO, ApiCase, record_text, tokens
from tests.support.api.websocket_case import SocketCase
from tests.support.waiting import LIMIT_S, eventually

MANY = 50
# An input that is too long to be rendered on the event loop, which a closed gate would block.
HELD = "Hi " * long_work.SHORT_TEXT


class GatedDialect:
    """Harmony that renders no prompt before `gate` is set; `most` is how many were rendered at the same time."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(HARMONY, name)

    def render(self, turn: Any, budget: Any = None) -> list[int]:
        # Here the event loop would wait for itself, so that a failure would take as long as all its limits together.
        assert self.gate.is_set() or asyncio._get_running_loop() is None, "a gate is closed on the event loop"
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        assert self.gate.wait(LIMIT_S)
        with self._lock:
            self.now -= 1
        return HARMONY.render(turn, budget)


class AdmissionCase(SocketCase):
    """An API whose planning waits at a gate."""

    def setUp(self) -> None:
        super().setUp()
        self.dialect = self.gated = GatedDialect()
        self.engine = ReplayEngine([record_text(HELLO)], loop=True)

    @property
    def taken(self) -> int:
        return sum(self.hub.admission.counts.values())

    async def post(self, client: AsyncClient, **body: Any) -> Any:
        return await super().post(client, **{"input": HELD, **body})

    async def post_to(self, client: AsyncClient, path: str = "", **body: Any) -> Any:
        data = orjson.dumps({"model": "m", "input": "Hi", **body})
        return await client.post(f"/v1/responses{path}", data, content_type="application/json")

    @asynccontextmanager
    async def waiting(self, count: int = 4) -> AsyncIterator[AsyncClient]:
        """A server in whose planning so many requests wait."""
        async with self.serving() as client:
            tasks = [asyncio.ensure_future(self.post(client, store=False)) for _ in range(count)]
            await eventually(lambda: self.gated.now == count)
            try:
                yield client
            finally:
                self.gated.gate.set()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


@override_settings(RESPONSES_MAX_CONCURRENT=4)
class ConcurrentRequestsTest(AdmissionCase):
    """Requests that come at once."""

    @pytest.mark.slow
    async def test_of_fifty_at_once_four_are_let_in_and_the_others_are_told_when_to_come_back(self) -> None:
        async with self.serving() as client:
            tasks = [asyncio.ensure_future(self.post(client, stream=number % 2 == 0, store=False)) for number in range(MANY)]
            await eventually(lambda: sum(task.done() for task in tasks) == MANY - 4)
            self.assertEqual(self.gated.now, 4)
            self.gated.gate.set()
            answers = await asyncio.gather(*tasks)
            for answer in answers:
                if answer.status_code == 429:
                    self.refused(answer, 429, "rate_limit_exceeded", None, "4 responses")
                    self.assertEqual(answer["Retry-After"], "1")
                elif answer.streaming:
                    await self.read(answer)
            self.assertEqual(sorted(answer.status_code for answer in answers), [200] * 4 + [429] * (MANY - 4))
            self.assertEqual(self.gated.most, 4)
            await eventually(lambda: self.taken == 0)

    async def test_counting_compacting_and_sockets_take_places_too(self) -> None:
        async with self.waiting() as client, self.socket() as socket:
            for path in ("/input_tokens", "/compact"):
                self.refused(await self.post_to(client, path), 429, "rate_limit_exceeded", None)
            self.assertEqual((await socket.create_rejected())["status"], 429)
            self.gated.gate.set()
            await eventually(lambda: self.taken == 0)
            self.assertEqual((await self.post_to(client, "/input_tokens")).status_code, 200)
            self.assertEqual((await self.post_to(client, "/compact")).status_code, 200)
            self.assertEqual((await socket.create_response())["status"], "completed")
            self.assertEqual(self.taken, 0)

    @override_settings(RESPONSES_MAX_BACKGROUND=2)
    async def test_the_background_has_a_limit_of_its_own_which_holds_too(self) -> None:
        self.engine = ReplayEngine([Recording([Tokens(tokens(HELLO)[:4]), Delay(600)])], loop=True)
        async with self.waiting() as client:
            tasks = [asyncio.ensure_future(self.post(client, background=True)) for _ in range(6)]
            # No row is stored yet: all requests wait in the planning.
            await eventually(lambda: self.taken == 10)
            self.assertEqual(self.hub.admission.counts[Kind.BACKGROUND], 2)
            self.assertEqual(self.hub.admission.counts[Kind.QUEUED], 4)
            self.gated.gate.set()
            await asyncio.gather(*tasks)
            self.assertEqual(self.hub.admission.counts[Kind.QUEUED], 0)
            self.assertEqual(self.hub.admission.counts[Kind.BACKGROUND], 2)
            self.assertEqual(await Lease.objects.filter(waiting=True).acount(), 4)


@override_settings(RESPONSES_MAX_CONCURRENT=1)
class SinglePlaceTest(AdmissionCase):
    """With one place, each way out must give it back before the next request."""

    async def test_a_listener_that_has_heard_the_end_can_begin_another(self) -> None:
        self.gated.gate.set()
        async with self.serving() as client, self.socket() as socket:
            for number in range(20):
                store = number % 2 == 0
                self.assertEqual((await self.stream(client, store=store))[-1]["type"], "response.completed")
                self.assertEqual((await self.post(client, store=store)).status_code, 200)
                self.assertEqual((await socket.create_response(store=store))["status"], "completed")
            for _ in range(20):
                await socket.create()
            for _ in range(20):
                self.assertEqual((await socket.receive_response())[-1]["type"], "response.completed")

    async def test_a_client_that_leaves_in_the_planning_gives_its_place_back(self) -> None:
        async with self.serving() as client:
            for stream in (True, False):
                with self.subTest(stream=stream):
                    task = asyncio.ensure_future(self.post(client, stream=stream))
                    await eventually(lambda: self.gated.now > 0)
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
                    self.assertEqual(self.taken, 0)
                    self.gated.gate.set()
                    await eventually(lambda: self.gated.now == 0)
                    self.assertEqual((await self.post(client)).status_code, 200)
                    self.gated.gate.clear()

    async def test_refusals_and_failures_give_the_place_back(self) -> None:
        self.gated.gate.set()
        self.engine = ReplayEngine([Recording([Fault("bad")]), record_text(HELLO)])
        async with self.serving() as client:
            unknown = new_id("resp_")
            self.assertEqual((await self.post(client, previous_response_id=unknown)).status_code, 400)
            with patch.object(history, "context", side_effect=OperationalError("away")):
                self.assertEqual((await self.post(client, previous_response_id=unknown)).status_code, 503)
            self.assertEqual((await self.post(client)).status_code, 400)
            self.engine.fail_for()
            self.assertEqual((await self.post(client)).status_code, 503)
            self.engine.recover()
            self.assertEqual((await self.post(client)).status_code, 200)
            self.assertEqual(self.taken, 0)

    async def test_a_response_that_is_taken_over_takes_a_place_and_gives_it_back(self) -> None:
        self.gated.gate.set()
        self.engine = ReplayEngine(
            [Recording([*record_text(HELLO).steps[:3], Delay(600), *record_text(HELLO).steps[3:]])], loop=True
        )
        async with self.serving() as client:
            response = await self.post(client, stream=True)
            self.assertEqual(response.status_code, 200)
            second = RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})
            try:
                await second.start()
                await self.hub.drain(0)
                self.assertEqual(self.taken, 0)
                await eventually(lambda: second.admission.counts[Kind.FOREGROUND] == 1)
                for run in second.runs.values():
                    run.cancel()
                await eventually(lambda: not second.runs)
                self.assertEqual(sum(second.admission.counts.values()), 0)
            finally:
                await second.close()
                await self.engine.start()
            response.close()


KINDS = ("post", "stream", "unknown", "invalid", "background", "count", "compact", "socket")
# A kind of request, and the seconds after which its client leaves, if the client leaves.
REQUESTS = st.tuples(st.sampled_from(KINDS), st.none() | st.floats(0, 0.03))
ROUNDS = st.lists(st.lists(REQUESTS, min_size=1, max_size=12), min_size=1, max_size=3)


@override_settings(RESPONSES_MAX_CONCURRENT=4, RESPONSES_MAX_BACKGROUND=4, RESPONSES_FINISH_ON_DISCONNECT=False)
@pytest.mark.slow
class HammerTest(AdmissionCase):
    """Drawn requests that end in drawn ways."""

    def test_after_any_mixture_of_ends_no_place_is_taken(self) -> None:
        @settings(max_examples=11)
        @given(ROUNDS)
        @example([[(kind, late) for kind in KINDS for late in (None, 0.01)]])
        def check(rounds: list[list[tuple[str, float | None]]]) -> None:
            async_to_sync(self.check_places)(rounds)

        self.gated.gate.set()
        check()

    async def check_places(self, rounds: list[list[tuple[str, float | None]]]) -> None:
        """Send the requests of each round at once, and check at the end that no place is taken."""
        faults = [Recording([Fault("bad")]), Recording([*record_text(HELLO).steps[:4], Fault("bad")])]
        self.engine = ReplayEngine([record_text(HELLO), slow(), *faults, record_text(HELLO)], loop=True)
        async with self.serving() as client:
            for requests in rounds:
                await asyncio.gather(*(self.send(client, *request) for request in requests))
                self.assertLessEqual(self.gated.most, 4 + 4 + 16)
                self.assertGreaterEqual(self.taken, 0)
            for run in list(self.hub.runs.values()):
                run.cancel()
            await eventually(lambda: not self.hub.runs and self.taken == 0)
            self.assertLessEqual(set(self.hub.admission.counts.values()), {0})

    async def send(self, client: AsyncClient, kind: str, leave_after_s: float | None) -> None:
        """Send a request of a kind, whose client may leave."""
        senders: dict[str, Callable[[], Awaitable[Any]]] = {
            "post": lambda: self.post(client, store=False),
            "stream": lambda: self.streamed(client),
            "unknown": lambda: self.post(client, previous_response_id=new_id("resp_")),
            "invalid": lambda: self.post(client, temperature=9),
            "background": lambda: self.post(client, background=True),
            "count": lambda: self.post_to(client, "/input_tokens"),
            "compact": lambda: self.post_to(client, "/compact"),
            "socket": self.create_over_socket,
        }
        task = asyncio.ensure_future(senders[kind]())
        if leave_after_s is not None:
            await asyncio.wait({task}, timeout=leave_after_s)
            task.cancel()
        with suppress(asyncio.CancelledError, ApiError):
            await task

    async def streamed(self, client: AsyncClient) -> None:
        response = await self.post(client, stream=True, store=False)
        if response.status_code == 200:
            await self.read(response)

    async def create_over_socket(self) -> None:
        async with self.socket() as socket:
            await socket.create()
            await socket.receive_response()


def slow() -> Recording:
    """A line that pauses behind each token."""
    return Recording([step for one in record_text(HELLO).steps for step in (one, Delay(0.01))])


class CountTest(ApiCase):
    """The count itself."""

    async def test_a_place_is_given_back_once(self) -> None:
        async with self.serving():
            admission = manager.current().admission
            with override_settings(RESPONSES_MAX_CONCURRENT=1):
                place = admission.admit("p")
                with self.assertRaises(RateLimited):
                    admission.admit("p")
                place.release()
                place.release()
                admission.admit("p")
                with self.assertRaises(RateLimited):
                    admission.admit("p")
