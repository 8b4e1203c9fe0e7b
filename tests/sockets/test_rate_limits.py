"""Rate limits of API keys on WebSockets."""

from __future__ import annotations

import asyncio

from responses_app.models import ConcurrencySlot
from tests.support.api.case import HELLO, record_text
from tests.support.api.delayed_release import delayed_release
from tests.support.api.websocket_case import TIMEOUT_S, SocketCase
from tests.support.waiting import eventually


class LimitsTest(SocketCase):
    async def has_no_slot(self) -> bool:
        """Return whether no slot is taken."""
        return not await ConcurrencySlot.objects.aexists()

    async def test_a_turn_behind_another_is_not_one_too_many_at_a_time(self) -> None:
        await self.limit(max_concurrent=1)
        async with self.serving(*[record_text(HELLO)] * 6), self.socket() as socket:
            for store in (False, True, False, False, True, True):
                self.assertEqual((await socket.create_response(store=store))["status"], "completed")
        self.assertEqual(await ConcurrencySlot.objects.acount(), 0)

    async def test_request_over_the_limit_is_an_error_and_the_socket_stays_usable(self) -> None:
        await self.limit(requests_per_minute=2)
        async with self.serving(*[record_text(HELLO)] * 3), self.socket() as socket:
            await socket.create_response()
            await socket.create_response()
            refused = await socket.create_rejected()
            self.assertEqual((refused["status"], refused["code"]), (429, "rate_limit_exceeded"))
            await self.limit(requests_per_minute=None)
            self.assertEqual((await socket.create_response())["status"], "completed")

    async def test_a_client_that_leaves_while_its_slot_is_given_back_takes_none_with_it(self) -> None:
        await self.limit(max_concurrent=1)
        # A response without a row releases the slot before the terminal event.
        with delayed_release() as (started, proceed):
            async with self.serving(record_text(HELLO), record_text(HELLO)):
                async with self.socket() as socket:
                    await socket.create(store=False)
                    async with asyncio.timeout(TIMEOUT_S):
                        await started.wait()
                self.assertEqual(await ConcurrencySlot.objects.acount(), 1)
                proceed.set()
                await eventually(lambda: not self.hub.runs)
                await eventually(self.has_no_slot)
                async with self.socket() as socket:
                    self.assertEqual((await socket.create_response(store=False))["status"], "completed")

    async def test_another_model_than_the_key_may_ask_is_refused(self) -> None:
        await self.limit(allowed_models=["other"])
        async with self.serving(), self.socket() as socket:
            refused = await socket.create_rejected()
            self.assertEqual((refused["status"], refused["param"]), (403, "model"))
            self.assertEqual(await ConcurrencySlot.objects.acount(), 0)
