"""Calls of server tools that use the database, while its connections are lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from django.db import connections
from django.test import override_settings

from responses_app.models import ContainerFile
from responses_app.runs.ids import new_id
from responses_app.sandbox.client import SandboxClient
from responses_app.tools.code_interpreter.containers import ContainerSession
from responses_app.tools.file_search.executor import FileSearchExecutor
from responses_app.tools.limits import ToolLimits
from tests.support.sandbox.runner import runner
from tests.support.store.connection_loss import cut, place
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.vector_stores import add_text, make_store

WRITE = "open('a.txt', 'w').write('1')"


@pytest.mark.django_db(transaction=True)
def test_run_of_code_outlasts_connections_that_are_lost_before_it_and_during_it(tmp_path: Path) -> None:
    address = place()

    async def main(url: str) -> None:
        client = SandboxClient(url)
        session = ContainerSession("test", {"type": "auto"}, "cntr_outage", client, new_id)
        result, notices = await session.run("cntr_outage", WRITE, lambda: cut(address))
        assert (result.value, notices, list(session.citable)) == ("1", [], ["/mnt/data/a.txt"])
        cut(address)
        again, notices = await session.run("cntr_outage", WRITE, lambda: None)
        assert (again.value, notices) == ("1", [])
        await client.delete("cntr_outage")
        await session.close()

    with runner(tmp_path) as started, override_settings(**file_storage_settings(tmp_path)):
        connections.close_all()
        asyncio.run(main(started.url))
    names = {path.name for path in (tmp_path / "files").iterdir()}
    assert names == set(ContainerFile.objects.values_list("storage_name", flat=True))


@pytest.mark.django_db(transaction=True)
def test_file_search_outlasts_lost_connections() -> None:
    store = make_store()
    add_text(store, "The vacation is in June.")
    executor = FileSearchExecutor({"vector_store_ids": [store.uid]}, "test", ToolLimits())
    call = {"arguments": orjson.dumps({"query": "vacation"}).decode()}

    address = place()

    async def main() -> None:
        await executor.prepare([])
        await executor.run(call, lambda _: None)
        # The pool has the connection of the first search.
        cut(address)
        result = await executor.run(call, lambda _: None)
        assert (result.failed, len(result.results or ())) == (False, 1)

    connections.close_all()
    asyncio.run(main())
