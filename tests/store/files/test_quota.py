"""Quota of a project over uploads and files of containers, copies that share bytes, and the free space of the disk."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from threading import Barrier

import pytest
from django.conf import settings
from django.core.files.storage import storages
from django.db import connection, transaction
from django.test import TransactionTestCase, override_settings

from responses_app.models import Container, ContainerFile, File, Project, StoredFile
from responses_app.runs.ids import new_id
from responses_app.store.files import container_files, containers, files, pending, quota, storage
from responses_app.store.files.quota import ContainerQuotaExceeded, DiskFull, FileQuotaExceeded, WriteRefused
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.stored_files import PROJECT, add, container, copy, new_container, upload
from tests.support.waiting import wait_until

MIB = quota.MIB


def in_turn(works: Sequence[Callable[[], object]]) -> list[object]:
    """Do all `works` once each of them waits for the turn of the project. Return the result or the exception of each."""
    with ThreadPoolExecutor(1) as thread:
        with transaction.atomic():
            quota.lock(PROJECT)
            results = thread.submit(in_parallel, works)
            # A work that failed before its turn is raised here rather than awaited.
            wait_until(lambda: results.done() or waiting_for_lock() == len(works), limit_s=120)
        return results.result()


def waiting_for_lock() -> int:
    """Return the number of sessions that wait for the lock that this session holds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks waiting JOIN pg_locks held USING (locktype, database, classid, objid, objsubid)"
            " WHERE locktype = 'advisory' AND NOT waiting.granted AND held.granted AND held.pid = pg_backend_pid()"
        )
        return int(cursor.fetchone()[0])


def in_parallel(works: Sequence[Callable[[], object]]) -> list[object]:
    """Do all `works` at the same time. Return the result or the exception of each."""
    barrier = Barrier(len(works))

    def do(work: Callable[[], object]) -> object:
        try:
            barrier.wait(60)
            return work()
        except (WriteRefused, File.DoesNotExist) as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(works)) as threads:
        return list(threads.map(do, works))


@pytest.mark.usefixtures("each_storage")
class QuotaTest(TransactionTestCase):
    """A quota of 4 MiB and 6 files."""

    @pytest.fixture(autouse=True)
    def each_storage(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.folder = folder
            limits = {
                "RESPONSES_FILES_MIB_PER_PROJECT": 4,
                "RESPONSES_FILES_PER_PROJECT": 6,
                "RESPONSES_CONTAINERS_PER_PROJECT": 3,
            }
            # A start marks the folder: a file that is missing there has been deleted.
            (folder / "files").mkdir()
            (folder / "files" / storage.MARKER).touch()
            with override_settings(**file_storage_settings(folder), **limits):
                yield

    def stored(self) -> set[str]:
        return {path.name for path in (self.folder / "files").glob("[!.]*")}

    def in_uploads(self) -> list[str]:
        return [path.name for path in (self.folder / "uploads").iterdir()]

    def test_uploads_and_files_of_containers_count_together(self) -> None:
        upload()
        row = container()
        file = add(row, "b.txt", 3 * MIB)
        with self.assertRaisesMessage(FileQuotaExceeded, "may have 4 MiB together"):
            upload("c.txt", 1)
        with self.assertRaisesMessage(FileQuotaExceeded, "may have 4 MiB together"):
            add(row, "c.txt", 1)
        # A file at the same path takes the place of the one before.
        self.assertEqual(add(row, "b.txt", 3 * MIB).uid, file.uid)
        with self.assertRaises(FileQuotaExceeded):
            add(row, "b.txt", 3 * MIB + 1)
        self.assertEqual(StoredFile.objects.count(), 2)
        container_files.delete_container(row)
        upload("c.txt", 3 * MIB)
        self.assertEqual(len(self.stored()), 2)
        self.assertEqual(self.in_uploads(), [])

    def test_storage_of_the_project_takes_the_place_of_the_setting(self) -> None:
        for mib in (1, 5):
            Project.objects.update_or_create(name=PROJECT, defaults={"storage_mib": mib})
            upload(f"{mib}.txt", MIB if mib == 1 else 4 * MIB)
            with self.assertRaisesMessage(FileQuotaExceeded, f"may have {mib} MiB together"):
                upload("more.txt", 1)
        Project.objects.update(storage_mib=None)
        with self.assertRaisesMessage(FileQuotaExceeded, "may have 4 MiB together"):
            upload("more.txt", 1)

    def test_number_of_files_is_limited(self) -> None:
        row = container()
        for number in range(5):
            add(row, str(number), 1)
        upload(size=1)
        for write in (lambda: upload(size=1), lambda: add(row, "6", 1)):
            with self.assertRaisesMessage(FileQuotaExceeded, "its limit of files (6)."):
                write()
        add(row, "4", 2)

    def test_quota_is_of_one_project(self) -> None:
        upload(size=4 * MIB)
        quota.check_files("other", 4 * MIB)

    def test_parallel_writes_do_not_exceed_the_quota_together(self) -> None:
        row = container()
        works = [lambda: upload(size=3 * MIB), lambda: add(row, "a", 3 * MIB), lambda: add(row, "b", 3 * MIB)]
        refused = [one for one in in_turn(works) if isinstance(one, FileQuotaExceeded)]
        self.assertEqual(len(refused), 2)
        self.assertEqual(File.objects.count() + ContainerFile.objects.count(), 1)
        self.assertEqual(len(self.stored()), 1)
        self.assertEqual(self.in_uploads(), [])

    def test_parallel_containers_do_not_exceed_the_limit_together(self) -> None:
        rows = [new_container(str(number)) for number in range(6)]
        results = in_turn([lambda row=row: containers.create(row) for row in rows])  # type: ignore[misc]
        self.assertEqual(sum(one is True for one in results), 3)
        self.assertEqual(sum(isinstance(one, ContainerQuotaExceeded) for one in results), 3)
        self.assertEqual(Container.objects.count(), 3)

    def test_copies_of_an_upload_share_its_bytes(self) -> None:
        file = upload(size=3 * MIB)
        rows = [container() for _ in range(3)]
        copies = [copy(row, file) for row in rows]
        self.assertEqual(self.stored(), {file.storage_name})
        quota.check_files(PROJECT, MIB)
        files.delete(file)
        self.assertEqual(self.stored(), {file.storage_name})
        # The bytes count as long as a container has them.
        with self.assertRaises(FileQuotaExceeded):
            quota.check_files(PROJECT, MIB + 1)
        container_files.delete(copies[0])
        container_files.delete_container(rows[1])
        self.assertEqual(storage.read(copies[2].storage_name, 3), b"xxx")
        container_files.delete_container(rows[2])
        self.assertEqual(self.stored(), set())
        quota.check_files(PROJECT, 4 * MIB)

    def test_upload_stays_when_its_copies_are_deleted_or_replaced(self) -> None:
        file, row = upload(), container()
        container_files.delete(copy(row, file))
        first = copy(row, file)
        self.assertEqual(copy(row, file).uid, first.uid)
        add(row, file.filename, 1)
        self.assertEqual(storage.read(file.storage_name, 1), b"x")
        self.assertEqual(len(self.stored()), 2)
        self.assertEqual(copy(row, file).uid, first.uid)
        self.assertEqual(self.stored(), {file.storage_name})

    def test_parallel_deletions_of_upload_and_copies_delete_the_bytes(self) -> None:
        file = upload()
        copies = [copy(container(), file) for _ in range(3)]
        works = [lambda one=one: container_files.delete(one) for one in copies]
        in_parallel([*works, lambda: files.delete(file)])
        self.assertEqual(self.stored(), set())
        self.assertEqual(self.in_uploads(), [])

    def test_copy_beside_the_deletion_of_its_upload_has_bytes_or_is_refused(self) -> None:
        row = container()
        for number in range(10):
            file = upload(f"{number}.txt", 1)
            copied, _ = in_parallel([lambda file=file: copy(row, file), lambda file=file: files.delete(file)])  # type: ignore[misc]
            if isinstance(copied, ContainerFile):
                self.assertEqual(storage.read(copied.storage_name, 1), b"x")
                container_files.delete(copied)
            else:
                self.assertIsInstance(copied, File.DoesNotExist)
            self.assertEqual(self.stored(), set())

    def test_container_with_a_deleted_upload_is_not_created(self) -> None:
        file, other = upload(), upload("b.txt")
        files.delete(file)
        with self.assertRaises(File.DoesNotExist):
            container_files.create_container(new_container(), [other, file], new_id)
        self.assertEqual((Container.objects.count(), ContainerFile.objects.count()), (0, 0))

    def test_interrupted_deletion_of_an_upload_keeps_the_bytes_of_a_copy(self) -> None:
        file = upload()
        copied = copy(container(), file)
        File.objects.all().delete()
        for mark in (f"{file.uid}.pending", f"{file.uid}~0.pending"):
            (self.folder / "uploads" / mark).touch()
        self.assertEqual(list(pending.clean_up()), [1, 1])
        self.assertEqual(self.stored(), {file.uid})
        ContainerFile.objects.filter(pk=copied.pk).delete()
        (self.folder / "uploads" / f"{file.uid}~1.pending").touch()
        self.assertEqual(list(pending.clean_up()), [1])
        self.assertEqual(self.stored(), set())

    def test_migration_counts_the_files_that_were_stored_before(self) -> None:
        file, row = upload(), container()
        copy(row, file)
        add(row, "b", 5)
        before = set(StoredFile.objects.values_list("name", "project", "bytes"))
        self.assertEqual(len(before), 2)
        StoredFile.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(import_module("responses_app.migrations.0014_stored_files").FILL)
        self.assertEqual(set(StoredFile.objects.values_list("name", "project", "bytes")), before)

    def test_storage_without_a_folder_shares_bytes_too(self) -> None:
        memory = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
        with override_settings(STORAGES={**settings.STORAGES, "files": memory}):
            file = upload()
            copied = copy(container(), file)
            files.delete(file)
            self.assertEqual(storage.read(copied.storage_name, 1), b"x")
            self.assertIsNone(storage.local_folder())
            container_files.delete(copied)
            self.assertFalse(storages["files"].exists(file.storage_name))

    def test_files_are_refused_while_the_disk_is_almost_full(self) -> None:
        # A thousand TiB are not free.
        most = 1024 * 1024 * 1024
        row = container()
        with override_settings(RESPONSES_MIN_FREE_MIB=most):
            with self.assertRaisesMessage(DiskFull, "The disk of the server is almost full"):
                add(row, "a", 1)
            # A copy takes no space.
            self.assertTrue(containers.create(new_container()))
        with override_settings(RESPONSES_MIN_FREE_MIB=1):
            quota.check_disk()
            with self.assertRaises(DiskFull):
                quota.check_disk(most * MIB)
        with override_settings(RESPONSES_MIN_FREE_MIB=0):
            quota.check_disk(most * MIB)
        self.assertEqual(ContainerFile.objects.count(), 0)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.txt", "/mnt/data/a.txt"),
        ("n" * 255, "/mnt/data/" + "n" * 255),
        ("é" * 127 + "x", "/mnt/data/" + "é" * 127 + "x"),
        ("é" * 200, "/mnt/data/" + "é" * 123 + "~1b1a5c4d"),
        ("é" * 200 + ".pdf", "/mnt/data/" + "é" * 121 + "~1b1a5c4d.pdf"),
        ("a." + "é" * 200, "/mnt/data/a." + "é" * 122 + "~1b1a5c4d"),
    ],
)
def test_long_name_is_shortened_to_255_bytes_before_its_extension(name: str, path: str) -> None:
    shortened = container_files.work_path(name)
    assert re.sub("~[0-9a-f]{8}", "~1b1a5c4d", shortened) == path
    assert len(shortened.removeprefix("/mnt/data/").encode()) <= 255


def test_long_names_with_the_same_beginning_stay_different() -> None:
    assert container_files.work_path("é" * 200 + "1.pdf") != container_files.work_path("é" * 200 + "2.pdf")
