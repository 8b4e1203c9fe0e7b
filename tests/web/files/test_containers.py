"""Pages and admin of containers."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.contrib.auth.models import User
from django.test import override_settings

from responses_app.models import Container, ContainerFile, FileSource, Membership
from responses_app.store.files import container_files
from responses_app.store.files.pending import part_path
from tests.support.store.file_storage import file_storage_settings
from tests.support.web.page_case import WebCase, collect, made


class ContainersTest(WebCase):
    """A storage of its own, and two projects."""

    def setUp(self) -> None:
        super().setUp()
        folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(**file_storage_settings(folder), RESPONSES_SANDBOX_URL=""))
        self.folder = folder

    def add(self, uid: str = "cntr_1", project: str = "default", age: timedelta = timedelta()) -> Container:
        """Add a container with a file, last used `age` ago."""
        used = datetime.now(UTC) - age
        row = Container.objects.create(uid=uid, project=project, name="<b>work</b>", created_at=used, last_active_at=used)
        name = container_files.new_name()
        part_path(name).write_bytes(b"Oslo")
        path = "/mnt/data/cities.csv"
        container_files.insert(container_files.new_row(row, f"cfile_{uid}", path, FileSource.ASSISTANT, 4, name))
        return row

    def stored(self) -> int:
        return len(list((self.folder / "files").glob("[!.]*")))

    def visit(self, path: str = "/containers") -> str:
        answer = self.client.get(path)
        self.assertEqual(answer.status_code, 200)
        text: str = answer.content.decode()
        return text

    def test_list_without_containers_names_the_tool(self) -> None:
        self.assertIn("code_interpreter", self.visit())

    def test_list_shows_name_status_and_files(self) -> None:
        self.add()
        self.add("cntr_2", age=timedelta(hours=1))
        page = self.visit()
        for text in ("&lt;b&gt;work&lt;/b&gt;", "Running", "Expired", "cities.csv", "4\xa0bytes"):
            with self.subTest(text):
                self.assertIn(text, page)

    def test_list_links_the_response_that_created_a_container(self) -> None:
        made("resp_1")
        for uid in ("cntr_1", "cntr_2"):
            self.add(uid)
        page = self.visit()
        self.assertEqual(page.count('title="The response that created the container"'), 1)
        self.assertIn('href="/responses/resp_1">Hi from resp_1</a>', page)
        # The question of another project is not shown.
        made("resp_2", project="other")
        member = User.objects.create_user("member")
        Membership.objects.create(user=member, project="default")
        self.client.force_login(member)
        self.assertNotIn("Hi from resp_2", self.visit())

    def test_file_is_downloaded(self) -> None:
        self.add()
        answer = self.client.get("/containers/cntr_1/files/cfile_cntr_1/content")
        self.assertEqual(collect(answer), b"Oslo")
        self.assertEqual(answer["Content-Disposition"], 'attachment; filename="cities.csv"')

    def test_container_is_deleted_after_a_confirmation(self) -> None:
        self.add()
        self.assertIn("Delete", self.visit("/containers/cntr_1/delete"))
        self.assertEqual(self.stored(), 1)
        self.assertContains(self.client.post("/containers/cntr_1/delete", follow=True), "The container was deleted.")
        self.assertEqual((self.stored(), Container.objects.count(), ContainerFile.objects.count()), (0, 0, 0))
        self.assertEqual(self.audited("container.delete"), [("container.delete", "container cntr_1")])

    def test_containers_of_other_projects_are_not_found(self) -> None:
        self.add(project="other")
        member = User.objects.create_user("member")
        Membership.objects.create(user=member, project="default")
        self.client.force_login(member)
        self.assertIn("No containers", self.visit())
        for path in ("/containers/cntr_1/delete", "/containers/cntr_1/files/cfile_cntr_1/content"):
            with self.subTest(path):
                self.assertEqual(self.client.get(path).status_code, 404)

    def test_containers_are_deleted_some_time_after_their_expiry(self) -> None:
        self.add(age=timedelta(hours=2))
        self.add("cntr_2", age=timedelta(minutes=30))
        self.assertEqual(list(container_files.delete_unused(datetime.now(UTC), None)), [])
        self.assertEqual(list(container_files.delete_unused(datetime.now(UTC), timedelta(hours=1))), [1])
        self.assertEqual([row.uid for row in Container.objects.all()], ["cntr_2"])
        self.assertEqual(self.stored(), 1)
