"""Pages and admin of uploaded files."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage
from django.db import DEFAULT_DB_ALIAS, connections
from django.test import Client, override_settings

from responses_app.models import File, Membership
from responses_app.store.files import files, storage
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.stored_files import add, container, upload
from tests.support.waiting import wait_until
from tests.support.web.page_case import WebCase, collect

NOW = datetime.now(UTC)


class FilesTest(WebCase):
    """A storage of its own, and two projects."""

    def setUp(self) -> None:
        super().setUp()
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(**file_storage_settings(folder)))
        self.folder = folder

    def add(self, uid: str = "file-1", name: str = "cities.csv", project: str = "default", **more: Any) -> File:
        (self.folder / "new").write_bytes(b"Oslo")
        storage.save(self.folder / "new", uid)
        row = File(
            uid=uid, project=project, filename=name, purpose="user_data", bytes=4, created_at=NOW, storage_name=uid, **more
        )
        files.create(row)
        return row

    def stored(self) -> list[str]:
        return sorted(path.name for path in (self.folder / "files").glob("[!.]*"))

    def visit(self, path: str = "/files") -> str:
        answer = self.client.get(path)
        self.assertEqual(answer.status_code, 200)
        text: str = answer.content.decode()
        return text

    def test_list_without_files_names_the_route(self) -> None:
        self.assertIn("POST /v1/files", self.visit())

    def test_list_shows_name_size_purpose_and_expiry(self) -> None:
        self.add(name="<b>cities</b>.csv", expires_at=NOW + timedelta(days=1))
        page = self.visit()
        for text in ("&lt;b&gt;cities&lt;/b&gt;.csv", "user_data", "4\xa0bytes", f"{NOW + timedelta(days=1):%Y-%m-%d %H:%M}"):
            with self.subTest(text):
                self.assertIn(text, page)

    def test_expired_file_is_not_listed(self) -> None:
        self.add(expires_at=NOW - timedelta(seconds=1))
        self.assertIn("No files", self.visit())

    def test_list_has_pages(self) -> None:
        File.objects.bulk_create(
            File(
                uid=f"file-{n}",
                project="default",
                filename=f"n{n}.",
                purpose="vision",
                bytes=1,
                created_at=NOW,
                storage_name=f"{n}",
            )
            for n in range(101)
        )
        first = self.visit()
        self.assertIn("n100.", first)
        self.assertNotIn(">n0.", first)
        self.assertIn("?after=file-1", first)
        self.assertIn(">n0.", self.visit("/files?after=file-1"))

    def test_file_is_downloaded(self) -> None:
        self.add()
        answer = self.client.get("/files/file-1/content")
        self.assertEqual(collect(answer), b"Oslo")
        self.assertEqual(answer["Content-Disposition"], 'attachment; filename="cities.csv"')
        self.assertEqual(answer["X-Content-Type-Options"], "nosniff")

    def test_file_is_deleted_after_a_confirmation(self) -> None:
        self.add()
        self.assertIn("Delete cities.csv?", self.visit("/files/file-1/delete"))
        self.assertEqual(self.stored(), ["file-1"])
        answer = self.client.post("/files/file-1/delete", follow=True)
        self.assertContains(answer, "The file was deleted.")
        self.assertEqual((self.stored(), File.objects.count()), ([], 0))
        self.assertEqual(self.audited("file.delete"), [("file.delete", "file file-1")])

    def test_files_of_other_projects_are_not_found(self) -> None:
        self.add(project="other")
        member = User.objects.create_user("member")
        Membership.objects.create(user=member, project="default")
        self.client.force_login(member)
        self.assertIn("No files", self.visit())
        for path in ("/files/file-1/content", "/files/file-1/delete"):
            with self.subTest(path):
                self.assertEqual(self.client.get(path).status_code, 404)

    def test_pages_need_a_user(self) -> None:
        self.client.logout()
        for path in ("/files", "/files/file-1/content", "/files/file-1/delete"):
            with self.subTest(path):
                self.assertEqual(self.client.get(path).status_code, 302)


@pytest.mark.django_db(transaction=True)
def test_deletion_that_waits_for_the_storage_holds_no_connection(client: Client, tmp_path: Path) -> None:
    page_connection, deleted = connections[DEFAULT_DB_ALIAS], list[str]()

    def delete(_storage: FileSystemStorage, name: str) -> None:
        wait_until(lambda: page_connection.connection is None, limit_s=5)
        deleted.append(name)

    client.force_login(User.objects.create_superuser("operator"))
    with override_settings(**file_storage_settings(tmp_path)), patch.object(FileSystemStorage, "delete", delete):
        file, work = upload(size=3), container()
        names = [file.storage_name, add(work, "a.txt", 3).storage_name]
        for path in (f"/files/{file.uid}/delete", f"/containers/{work.uid}/delete"):
            assert client.post(path).status_code == 302
    assert deleted == names
