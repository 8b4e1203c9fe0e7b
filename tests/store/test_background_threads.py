"""Work of the background that waits for the database stops nothing that needs a thread of asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from unittest.mock import Mock, patch

import psycopg
import pytest

from responses_app.runs import maintenance
from responses_app.store.db import call_in_thread, check_connection

LIMIT_S = 10


@pytest.mark.parametrize("is_maintenance", [True, False])
def test_work_that_waits_leaves_the_threads_of_asyncio_free(is_maintenance: bool) -> None:
    released = threading.Event()

    def wait_for_database(_now: datetime | None = None) -> Iterator[int]:
        released.wait(2 * LIMIT_S)
        return iter(())

    async def go() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        call = maintenance._in_thread(wait_for_database) if is_maintenance else call_in_thread(wait_for_database)
        waiting = asyncio.ensure_future(call)
        # A task of its own, so that it begins after the other one.
        other = asyncio.ensure_future(asyncio.to_thread(threading.get_ident))
        try:
            await asyncio.wait_for(other, LIMIT_S)
        finally:
            released.set()
            await waiting

    asyncio.run(go())


def test_connection_that_cannot_be_checked_does_not_work() -> None:
    failing = Mock(side_effect=psycopg.OperationalError("the connection is lost"))
    with patch("responses_app.store.db.connection", Mock(in_atomic_block=False, connection=None, pool=Mock(check=failing))):
        assert not check_connection()
    failing.assert_called_once()
