"""Check of a key before the body while the database does not answer."""

from __future__ import annotations

import asyncio
import gc
from typing import Any
from unittest import mock

import psycopg
from django.conf import settings
from django.db import connections
from django.test import TransactionTestCase

from responses_app.access import gate
from responses_app.errors import DatabaseAway
from tests.support.store.connection_loss import place
from tests.support.store.lock_waits import FROM_WAITING
from tests.support.waiting import eventually

END_WAITING = f"SELECT pg_terminate_backend(pid) {FROM_WAITING} AND relation = 'responses_app_apikey'::regclass"


class LookUpTest(TransactionTestCase):
    """Against the real database, in which a lock lets look-ups wait."""

    def tearDown(self) -> None:
        connections.close_all()

    async def test_look_up_that_takes_too_long_ends_and_its_later_error_is_no_traceback(self) -> None:
        unhandled = list[dict[str, Any]]()
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unhandled.append(context))
        look_ups = list[asyncio.Future[Any]]()

        def note(call: Any) -> asyncio.Future[Any]:
            look_ups.append(asyncio.ensure_future(call()))
            return look_ups[-1]

        keys = gate.KeyGate(note, settings.RESPONSES_CORS_POLICY, settings.RESPONSES_TRUSTED_PROXIES)
        async with await psycopg.AsyncConnection.connect(**place()) as other:
            await other.execute("LOCK TABLE responses_app_apikey")
            with mock.patch.object(gate, "LOOK_UP_LIMIT_S", 0.1), self.assertRaises(DatabaseAway):
                await keys.look_up("Bearer sk-unknown")
            await other.execute(END_WAITING)
        await eventually(lambda: look_ups[0].done())
        look_ups.clear()
        gc.collect()
        await asyncio.to_thread(gc.collect)
        self.assertEqual(unhandled, [])
