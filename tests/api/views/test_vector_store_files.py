"""Routes of the files in vector stores, and of batches of files."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.test import override_settings

from responses_app.models import File
from tests.support.api.vector_store_case import VectorStoreCase
from tests.support.store.vector_stores import add_file, add_text, make_file, make_store


class StoreFileTest(VectorStoreCase):
    async def test_file_is_waiting_then_completed(self) -> None:
        store, file = await sync_to_async(make_store)(), await sync_to_async(make_file)()
        sizes = {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50}
        async with self.serving() as client:
            added = await self.ask(
                client,
                "post",
                f"/{store.uid}/files",
                file_id=file.uid,
                attributes={"a": 1.5, "b": True, "c": "d"},
                chunking_strategy={"type": "static", "static": sizes},
            )
            created = added.pop("created_at")
            self.assertGreater(created, 0)
            self.assertEqual(
                added,
                {
                    "id": file.uid,
                    "object": "vector_store.file",
                    "vector_store_id": store.uid,
                    "usage_bytes": 0,
                    "status": "in_progress",
                    "last_error": None,
                    "chunking_strategy": {"type": "static", "static": sizes},
                    "attributes": {"a": 1.5, "b": True, "c": "d"},
                },
            )

    async def test_polls_name_the_pause(self) -> None:
        store = await sync_to_async(make_store)()
        added = await sync_to_async(add_file)(store)
        async with self.serving() as client:
            path = f"/v1/vector_stores/{store.uid}/files/{added.file.uid}"
            polled = await client.get(path, headers={"X-Stainless-Poll-Helper": "true"})
            self.assertEqual(polled["openai-poll-after-ms"], "100")
            self.assertNotIn("openai-poll-after-ms", await client.get(path))

    async def test_content_is_the_text_without_overlaps(self) -> None:
        store = await sync_to_async(make_store)()
        text = "".join(f"Line {n} of the file.\n" for n in range(500))
        added = await sync_to_async(add_text)(store, text)
        async with self.serving() as client:
            page = await self.ask(client, "get", f"/{store.uid}/files/{added.file.uid}/content")
        self.assertGreater(len(page["data"]), 2)
        self.assertEqual("".join(part["text"] for part in page["data"]), text)

    async def test_attributes_are_replaced(self) -> None:
        store = await sync_to_async(make_store)()
        added = await sync_to_async(add_text)(store, "Foxes.", attributes={"a": 1, "b": 2})
        async with self.serving() as client:
            path = f"/{store.uid}/files/{added.file.uid}"
            self.assertEqual((await self.ask(client, "post", path, attributes={"b": 3}))["attributes"], {"b": 3})
            self.assertEqual((await self.ask(client, "get", path))["attributes"], {"b": 3})
            self.refused(await self.call(client, "post", path), 400, "missing_required_parameter", "attributes")
            self.refused(await self.call(client, "post", path, attributes={"b": []}), 400, "invalid_type", "attributes.b")
            self.refused(
                await self.call(client, "post", path, attributes={"b": "x" * 513}), 400, "invalid_value", "attributes.b"
            )
            many = {str(n): n for n in range(17)}
            self.refused(await self.call(client, "post", path, attributes=many), 400, "invalid_value", "attributes")

    async def test_removed_file_is_not_found_by_searches(self) -> None:
        store = await sync_to_async(make_store)()
        added = await sync_to_async(add_text)(store, "Foxes hunt.")
        async with self.serving() as client:
            path = f"/{store.uid}/files/{added.file.uid}"
            removed = await self.ask(client, "delete", path)
            self.assertEqual(removed, {"id": added.file.uid, "object": "vector_store.file.deleted", "deleted": True})
            self.refused(await self.call(client, "delete", path), 404, None, None, added.file.uid)
            page = await self.ask(client, "post", f"/{store.uid}/search", query="foxes")
        self.assertEqual(page["data"], [])
        self.assertEqual(await File.objects.acount(), 1)

    async def test_lists_filter_by_status(self) -> None:
        store = await sync_to_async(make_store)()
        done = await sync_to_async(add_text)(store, "Foxes hunt.")
        waiting = await sync_to_async(add_file)(store)
        async with self.serving() as client:
            everything = await self.ask(client, "get", f"/{store.uid}/files")
            self.assertEqual([one["id"] for one in everything["data"]], [waiting.file.uid, done.file.uid])
            completed = await self.ask(client, "get", f"/{store.uid}/files?filter=completed")
            self.assertEqual([one["id"] for one in completed["data"]], [done.file.uid])
            self.refused(await self.call(client, "get", f"/{store.uid}/files?filter=x"), 400, "invalid_value", "filter")

    async def test_list_continues_after_a_file_whose_status_has_changed(self) -> None:
        store = await sync_to_async(make_store)()
        waiting = await sync_to_async(add_file)(store)
        done = await sync_to_async(add_text)(store, "Foxes hunt.")
        async with self.serving() as client:
            path = f"/{store.uid}/files?filter=in_progress&after={done.file.uid}"
            page = await self.ask(client, "get", path)
        self.assertEqual([one["id"] for one in page["data"]], [waiting.file.uid])

    @override_settings(RESPONSES_VECTOR_STORE_FILES=1)
    async def test_limit_of_files_is_refused(self) -> None:
        store = await sync_to_async(make_store)()
        added, other = await sync_to_async(add_text)(store, "Foxes."), await sync_to_async(make_file)()
        async with self.serving() as client:
            refused = await self.call(client, "post", f"/{store.uid}/files", file_id=other.uid)
            self.refused(refused, 400, "vector_store_file_limit_exceeded", "file_id")
            again = await self.ask(client, "post", f"/{store.uid}/files", file_id=added.file.uid)
            self.assertEqual(again["status"], "in_progress")


class FileBatchTest(VectorStoreCase):
    async def test_batch_counts_its_files(self) -> None:
        store = await sync_to_async(make_store)()
        await sync_to_async(add_file)(store)
        files = [await sync_to_async(make_file)() for _ in range(2)]
        async with self.serving() as client:
            batch = await self.ask(
                client,
                "post",
                f"/{store.uid}/file_batches",
                files=[{"file_id": file.uid, "attributes": {"n": n}} for n, file in enumerate(files)],
            )
            self.assertTrue(batch["id"].startswith("vsfb_"))
            self.assertEqual(
                (batch["object"], batch["status"], batch["file_counts"]["total"]),
                ("vector_store.files_batch", "in_progress", 2),
            )
            path = f"/{store.uid}/file_batches/{batch['id']}"
            self.assertEqual(await self.ask(client, "get", path), batch)
            listed = await self.ask(client, "get", f"{path}/files?order=asc")
            self.assertEqual(
                [(one["id"], one["attributes"]) for one in listed["data"]], [(files[0].uid, {"n": 0}), (files[1].uid, {"n": 1})]
            )
            cancelled = await self.ask(client, "post", f"{path}/cancel")
            self.assertEqual((cancelled["status"], cancelled["file_counts"]["cancelled"]), ("cancelled", 2))
            counts = (await self.ask(client, "get", f"/{store.uid}"))["file_counts"]
            self.assertEqual((counts["in_progress"], counts["cancelled"]), (1, 2))

    async def test_batch_with_an_unknown_file_adds_none(self) -> None:
        store, file = await sync_to_async(make_store)(), await sync_to_async(make_file)()
        async with self.serving() as client:
            refused = await self.call(client, "post", f"/{store.uid}/file_batches", file_ids=[file.uid, "file-none"])
            self.refused(refused, 400, "file_not_found", "file_ids[1]", "file-none")
            self.assertEqual((await self.ask(client, "get", f"/{store.uid}"))["file_counts"]["total"], 0)

    async def test_batch_needs_files(self) -> None:
        store = await sync_to_async(make_store)()
        async with self.serving() as client:
            self.refused(await self.call(client, "post", f"/{store.uid}/file_batches"), 400, "invalid_value", "file_ids")
            empty = await self.call(client, "post", f"/{store.uid}/file_batches", file_ids=[])
            self.refused(empty, 400, "array_below_min_length", "file_ids")
