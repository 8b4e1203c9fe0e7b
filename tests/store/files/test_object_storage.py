"""Copies of uploads in containers where the storage is no folder, as with S3: Django's storage in memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.test import TransactionTestCase, override_settings

from responses_app.store.files import container_files, files, pending, storage
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.stored_files import add, container, copy, upload

BACKEND = {"BACKEND": "django.core.files.storage.InMemoryStorage"}


@pytest.mark.usefixtures("memory_storage")
class ObjectStorageTest(TransactionTestCase):
    """Copies name the bytes of their upload, which exist as long as a row names them."""

    @pytest.fixture(autouse=True)
    def memory_storage(self) -> Iterator[None]:
        with tempfile.TemporaryDirectory() as name:
            self.folder = Path(name)
            with (
                override_settings(**file_storage_settings(self.folder)),
                override_settings(STORAGES={**settings.STORAGES, "files": BACKEND}),
            ):
                yield

    def stored(self) -> set[str]:
        return set(storage.storage().listdir("")[1])

    def test_storage_has_no_folder(self) -> None:
        upload()
        self.assertIsNone(storage.local_folder())
        self.assertFalse((self.folder / "files").exists())

    def test_bytes_are_deleted_with_the_last_row_that_names_them(self) -> None:
        file, first, second = upload(size=3), container(), container()
        copied, _ = copy(first, file), copy(second, file)
        self.assertEqual(self.stored(), {file.storage_name})
        files.delete(file)
        container_files.delete_container(second)
        self.assertEqual(storage.read(copied.storage_name, 9), b"xxx")
        container_files.delete(copied)
        self.assertEqual(self.stored(), set())

    def test_replaced_copy_leaves_the_upload(self) -> None:
        file, row = upload(size=3), container()
        copy(row, file)
        replacement = add(row, file.filename, 1)
        self.assertEqual(self.stored(), {file.storage_name, replacement.storage_name})
        container_files.delete_container(row)
        self.assertEqual(self.stored(), {file.storage_name})

    def test_interrupted_deletion_keeps_the_bytes_of_a_copy(self) -> None:
        file = upload(size=3)
        copied = copy(container(), file)
        file.delete()
        (self.folder / "uploads" / f"{file.uid}.pending").touch()
        self.assertEqual(list(pending.clean_up()), [1])
        self.assertEqual(storage.read(copied.storage_name, 9), b"xxx")
        copied.delete()
        (self.folder / "uploads" / f"{file.uid}.pending").touch()
        self.assertEqual(list(pending.clean_up()), [1])
        self.assertEqual(self.stored(), set())
