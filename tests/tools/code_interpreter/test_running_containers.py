"""Requests that change a container whose code has run, or runs for the first time: added files and deletions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from asgiref.sync import sync_to_async
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import AsyncClient, override_settings
from django.utils import timezone

from responses_app.api.views import container_files, containers
from responses_app.models import Container, ContainerFile
from responses_app.runs.ids import new_id
from responses_app.sandbox.base import ContainerExpired, RunResult
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.options import RunnerOptions
from responses_app.store.files import storage
from responses_app.tools.code_interpreter.containers import ContainerSession
from tests.support.api.case import ApiCase
from tests.support.sandbox.runner import Runner, runner
from tests.support.store.file_storage import file_storage_settings

UID = "cntr_run"
FILES = f"/v1/containers/{UID}/files"
WAIT_FOR_FILE = """
import os
text = ''
while not text:
    os.sched_yield()
    if os.path.exists('new.txt'):
        text = open('new.txt').read()
text
"""


@pytest.fixture(scope="module")
def small_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("sandbox"), RunnerOptions(disk_mib=4)) as started:
        yield started


async def call_with_connection_of_the_test(_project: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function` in the thread whose transaction has the rows of the test."""
    return await sync_to_async(function)(*args)


@pytest.mark.usefixtures("class_runner")
class RunningContainersTest(ApiCase):
    url: str

    @pytest.fixture(autouse=True)
    def class_runner(self, small_runner: Runner, tmp_path: Any) -> Iterator[None]:
        type(self).url = small_runner.url
        with override_settings(RESPONSES_SANDBOX_URL=small_runner.url, **file_storage_settings(tmp_path)):
            yield

    def setUp(self) -> None:
        super().setUp()
        now = timezone.now()
        Container.objects.create(uid=UID, project=self.key.project, name="work", created_at=now, last_active_at=now)
        for views in (containers, container_files):
            self.enterContext(patch.object(views, "call_in_thread", call_with_connection_of_the_test))

    def begin(self, code: str) -> tuple[asyncio.Task[tuple[RunResult, list[str]]], asyncio.Event]:
        """Run code in the container. The event is set when the container has started."""
        session = ContainerSession(self.key.project, UID, "cntr_fallback", SandboxClient(self.url), new_id)
        started = asyncio.Event()

        async def run() -> tuple[RunResult, list[str]]:
            try:
                return await session.run(UID, code, started.set)
            finally:
                await session.close()

        return asyncio.create_task(run()), started

    async def add(self, client: AsyncClient, name: str, data: bytes) -> Any:
        return await client.post(FILES, {"file": SimpleUploadedFile(name, data)})

    async def test_file_that_the_running_container_cannot_have_is_refused_and_not_stored(self) -> None:
        run, _ = self.begin("import os; os.mkdir('new.txt')")
        await run
        async with self.serving() as client:
            for name, size, words in (
                ("new.txt", 1, "'new.txt' is a folder"),
                ("big", 5 << 20, "has no space for '/mnt/data/big'"),
            ):
                answer = await self.add(client, name, bytes(size))
                error = orjson.loads(answer.content)["error"]
                assert (answer.status_code, error["param"]) == (400, "file"), error
                assert error["message"].startswith("The file was not added to the container: ")
                assert words in error["message"].replace("/mnt/data/new.txt", "new.txt")
            assert await ContainerFile.objects.acount() == 0
            await client.delete(f"/v1/containers/{UID}")

    async def test_file_that_is_added_during_the_first_run_reaches_the_code(self) -> None:
        run, started = self.begin(WAIT_FOR_FILE)
        await started.wait()
        async with self.serving() as client:
            assert (await self.add(client, "new.txt", b"Oslo")).status_code == 200
            async with asyncio.timeout(60):
                result, _ = await run
            await client.delete(f"/v1/containers/{UID}")
        assert result.value == "'Oslo'"

    async def test_run_of_a_container_that_another_response_starts_waits_for_the_files(self) -> None:
        open_chunks, opened, may_go_on = storage.open_chunks, asyncio.Event(), asyncio.Event()

        async def open_slowly(name: str) -> AsyncIterator[bytes]:
            opened.set()
            await may_go_on.wait()
            return await open_chunks(name)

        async with self.serving() as client:
            await self.add(client, "new.txt", b"Oslo")
            with patch.object(storage, "open_chunks", open_slowly):
                first, _ = self.begin("open('new.txt', 'w').write('Rome')")
                await opened.wait()
                second, second_started = self.begin("import os; os.listdir('.')")
                await second_started.wait()
                # Without the wait the code runs in this time.
                await asyncio.wait({second}, timeout=1)
                may_go_on.set()
                results = await asyncio.gather(first, second)
            last, _ = self.begin("open('new.txt').read()")
            assert [result.value for result, _ in (*results, await last)] == ["4", "['new.txt']", "'Rome'"]
            await client.delete(f"/v1/containers/{UID}")

    async def test_deletion_during_the_first_run_ends_the_container(self) -> None:
        run, started = self.begin(WAIT_FOR_FILE)
        await started.wait()
        async with self.serving() as client:
            assert (await client.delete(f"/v1/containers/{UID}")).status_code == 200
        async with asyncio.timeout(60):
            await asyncio.wait({run})
        sandbox = SandboxClient(self.url)
        with self.assertRaises(ContainerExpired):
            await sandbox.status(UID)
        await sandbox.close()
        assert await Container.objects.acount() == 0

    async def test_container_that_is_deleted_during_an_upload_is_not_found(self) -> None:
        async def call_after_deletion(project: str, function: Callable[..., Any], *args: Any) -> Any:
            await Container.objects.filter(uid=UID).adelete()
            return await call_with_connection_of_the_test(project, function, *args)

        with patch.object(container_files, "call_in_thread", call_after_deletion):
            async with self.serving() as client:
                answer = await self.add(client, "new.txt", b"Oslo")
        self.refused(answer, 404, None, None, f"No container found with id '{UID}'.")
