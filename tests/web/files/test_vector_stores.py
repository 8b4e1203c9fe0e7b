"""Pages and admin of vector stores."""

from __future__ import annotations

from django.contrib.auth.models import User

from responses_app.models import File, Membership, VectorStore, VectorStoreFile
from responses_app.store.vector_stores import jobs
from tests.support.store.vector_stores import add_file, add_text, make_store
from tests.support.web.page_case import WebCase


class VectorStorePagesTest(WebCase):
    def visit(self, path: str = "/vector-stores") -> str:
        answer = self.client.get(path)
        self.assertEqual(answer.status_code, 200)
        text: str = answer.content.decode()
        return text

    def fail_file(self, store: VectorStore, message: str) -> VectorStoreFile:
        added = add_file(store, "<i>broken</i>.pdf")
        job = jobs.claim_next()
        assert job is not None
        jobs.fail(job, "invalid_file", message)
        return added

    def test_list_without_stores_names_the_route(self) -> None:
        self.assertIn("POST /v1/vector_stores", self.visit())

    def test_list_shows_status_and_counts(self) -> None:
        store = make_store("default", name="<b>notes</b>")
        add_text(store, "Foxes hunt.")
        self.fail_file(store, "No text.")
        page = self.visit()
        for text in ("&lt;b&gt;notes&lt;/b&gt;", "Completed", "1 of 2, 1 failed"):
            with self.subTest(text):
                self.assertIn(text, page)

    def test_store_shows_its_files_and_is_loaded_again_while_files_are_in_progress(self) -> None:
        store = make_store("default", name="notes")
        self.fail_file(store, "<script>No text.")
        self.assertNotIn("Refresh", self.client.get(f"/vector-stores/{store.uid}").headers)
        add_file(store)
        answer = self.client.get(f"/vector-stores/{store.uid}")
        self.assertEqual(answer["Refresh"], "5")
        for text in (
            "&lt;i&gt;broken&lt;/i&gt;.pdf",
            "Failed: &lt;script&gt;No text.",
            "In progress",
            "1 in progress, 1 failed",
        ):
            with self.subTest(text):
                self.assertContains(answer, text)

    def test_store_without_files_names_the_route(self) -> None:
        store = make_store("default")
        page = self.visit(f"/vector-stores/{store.uid}")
        self.assertIn(f"/v1/vector_stores/{store.uid}/files", page)
        self.assertNotIn("0 completed", page)

    def test_store_is_deleted_after_a_confirmation(self) -> None:
        store = make_store("default", name="notes")
        add_text(store, "Foxes hunt.")
        path = f"/vector-stores/{store.uid}/delete"
        self.assertIn("Delete notes?", self.visit(path))
        self.assertContains(self.client.post(path, follow=True), "The vector store was deleted.")
        self.assertEqual((VectorStore.objects.count(), File.objects.count()), (0, 1))
        self.assertEqual(self.audited("vector-store.delete"), [("vector-store.delete", f"vector store {store.uid}")])

    def test_file_is_removed_after_a_confirmation(self) -> None:
        store = make_store("default")
        added = add_text(store, "Foxes hunt.")
        path = f"/vector-stores/{store.uid}/files/{added.file.uid}/remove"
        self.assertIn("Remove notes.txt?", self.visit(path))
        self.assertContains(self.client.post(path, follow=True), "The file was removed from the vector store.")
        self.assertEqual((VectorStoreFile.objects.count(), File.objects.count()), (0, 1))
        what = f"file {added.file.uid} of vector store {store.uid}"
        self.assertEqual(self.audited("vector-store.change"), [("vector-store.change", what)])

    def test_stores_of_other_projects_are_not_shown(self) -> None:
        store = make_store("other", name="undisclosed")
        user = User.objects.create_user("member")
        Membership.objects.create(user=user, project="default")
        self.client.force_login(user)
        self.assertNotIn("undisclosed", self.visit())
        for path in ("", "/delete", "/files/file-1/remove"):
            with self.subTest(path):
                self.assertEqual(self.client.get(f"/vector-stores/{store.uid}{path}").status_code, 404)
