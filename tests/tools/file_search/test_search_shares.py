"""Shares of projects in the searches of vector stores."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import psycopg
import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from responses_app.tools.file_search.service import StoreSearchOptions, search
from tests.support.store.lock_waits import FROM_WAITING
from tests.support.store.vector_stores import make_store
from tests.support.waiting import eventually

# The locks, as a session that waits is active for a moment when it looks for deadlocks.
BLOCKED = f"SELECT count(*) {FROM_WAITING}"


@pytest.mark.django_db(transaction=True)
@override_settings(RESPONSES_SEARCH_PARALLEL=2)
def test_slow_searches_of_a_project_leave_a_place_for_others() -> None:
    # The use of a store is stored when the last one is long ago, so a locked row delays its search.
    busy, quiet = make_store("busy", last_active_at=timezone.now() - timedelta(days=1)), make_store("quiet")
    options = StoreSearchOptions(limit=5)

    async def main() -> None:
        with psycopg.connect(**connection.get_connection_params() | {"cursor_factory": psycopg.Cursor}) as gate:
            gate.execute("SELECT FROM responses_app_vectorstore WHERE id = %s FOR UPDATE", [busy.pk])
            slow = [asyncio.ensure_future(search([busy], ["word"], options)) for _ in range(4)]
            with psycopg.connect(**connection.get_connection_params(), autocommit=True) as observer:

                def blocked() -> int:
                    row = observer.execute(BLOCKED).fetchone()
                    return 0 if row is None else row[0]

                await eventually(lambda: blocked() == 1)
                assert await search([quiet], ["word"], options) == []
                assert (blocked(), [task.done() for task in slow]) == (1, [False] * 4)
        assert await asyncio.gather(*slow) == [[]] * 4

    asyncio.run(main())
