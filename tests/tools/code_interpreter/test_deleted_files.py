"""Stored files of containers that code deletes: their rows and bytes are deleted too, and a new start of the container has none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import TestCase, override_settings
from django.utils import timezone

from responses_app.models import Container, ContainerFile, File, FilePurpose
from responses_app.runs.ids import new_id
from responses_app.sandbox.base import ContainerExpired
from responses_app.sandbox.client import SandboxClient
from responses_app.store.files import container_files
from responses_app.store.files.pending import MARK
from responses_app.tools.code_interpreter.containers import ContainerSession
from tests.support.sandbox.runner import Runner, runner
from tests.support.store.file_storage import file_storage_settings

UID = "cntr_deleting"


@pytest.fixture(scope="module")
def code_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("sandbox")) as started:
        yield started


@pytest.mark.usefixtures("class_runner")
class DeletedFilesTest(TestCase):
    folder: Path
    url: str

    @pytest.fixture(autouse=True)
    def class_runner(self, code_runner: Runner, tmp_path: Path) -> Iterator[None]:
        type(self).url, type(self).folder = code_runner.url, tmp_path
        with override_settings(RESPONSES_SANDBOX_URL=code_runner.url, **file_storage_settings(tmp_path)):
            yield

    def session(self) -> ContainerSession:
        return ContainerSession("test", {"type": "auto"}, UID, SandboxClient(self.url), new_id)

    async def end(self) -> None:
        client = SandboxClient(self.url)
        await client.delete(UID)
        await client.close()

    def stored(self) -> int:
        """Return the number of files in the storage. No mark of an interrupted change may be left."""
        assert not list(self.folder.rglob(f"*{MARK}"))
        return len(list((self.folder / "files").glob("container-*")))

    async def test_deleted_and_renamed_files_do_not_come_back(self) -> None:
        session = self.session()
        await session.run(UID, "import os\nfor name in 'abcd': open(name, 'w').write(name)", lambda: None)
        code = "os.unlink('a'); os.rename('b', 'e'); os.unlink('c'); os.symlink('/etc/passwd', 'c')"
        await session.run(UID, code, lambda: None)
        assert {file.path async for file in ContainerFile.objects.all()} == {"/mnt/data/d", "/mnt/data/e"}
        assert (sorted(session.citable), self.stored()) == (["/mnt/data/d", "/mnt/data/e"], 2)
        await self.end()
        result, _ = await session.run(UID, "import os; sorted(os.listdir()), open('e').read()", lambda: None)
        assert result.value == "(['d', 'e'], 'b')"
        await session.run(UID, "os.unlink('d'); 1 / 0", lambda: None)
        await session.run(UID, "os.unlink('e'); os._exit(1)", lambda: None)
        assert (await ContainerFile.objects.acount(), self.stored()) == (0, 0)
        await self.end()
        await session.close()

    async def test_upload_stays_when_code_deletes_the_copy(self) -> None:
        now = timezone.now()
        row = await Container.objects.acreate(uid=UID, project="test", name="work", created_at=now, last_active_at=now)
        (self.folder / "files").mkdir()
        (self.folder / "files" / "file-1").write_bytes(b"Oslo")
        values = {"purpose": FilePurpose.USER_DATA, "bytes": 4, "created_at": now, "storage_name": "file-1"}
        upload = await File.objects.acreate(uid="file-1", project="test", filename="city.txt", **values)
        await ContainerFile.objects.acreate(
            uid="cfile_1",
            container=row,
            path="/mnt/data/city.txt",
            bytes=4,
            source="user",
            created_at=now,
            storage_name="file-1",
        )
        session = self.session()
        result, _ = await session.run(UID, "import os; os.unlink('city.txt'); os.listdir()", lambda: None)
        await self.end()
        await session.close()
        assert (result.value, await ContainerFile.objects.acount()) == ("[]", 0)
        assert (self.folder / "files" / "file-1").exists()
        assert await File.objects.filter(pk=upload.pk).aexists()

    async def test_file_that_an_upload_has_replaced_since_stays(self) -> None:
        session = self.session()
        await session.run(UID, "open('a', 'w').write('1')", lambda: None)
        await self.end()
        await session.close()
        row = await Container.objects.aget(uid=UID)
        await container_files.delete_written(row, {"/mnt/data/a": "container-before", "/mnt/data/b": "container-x"})
        assert (await ContainerFile.objects.acount(), self.stored()) == (1, 1)

    async def test_end_of_the_container_during_a_run_deletes_no_file(self) -> None:
        session = self.session()
        await session.run(UID, "open('a', 'w').write('1')", lambda: None)
        client, printed = SandboxClient(self.url), asyncio.Event()
        run = asyncio.create_task(client.run(UID, "print(1)\nwhile True: pass", lambda *_: printed.set()))
        await printed.wait()
        await client.delete(UID)
        result = await run
        assert (result.was_killed, result.deleted) == (True, ())
        with self.assertRaises(ContainerExpired):
            await client.status(UID)
        await client.close()
        await session.close()
