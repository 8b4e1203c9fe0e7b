"""Routes of vector stores: objects, pages, changes, searches, and refused requests."""

from __future__ import annotations

from datetime import timedelta

from asgiref.sync import sync_to_async
from django.test import override_settings
from django.utils import timezone

from responses_app.models import ApiKey, File, VectorStore
from tests.support.api.case import KeyedClient
from tests.support.api.vector_store_case import VectorStoreCase
from tests.support.store.vector_stores import add_text, make_file, make_store


class VectorStoreTest(VectorStoreCase):
    async def test_new_store_has_every_field(self) -> None:
        async with self.serving() as client:
            made = await self.ask(
                client, "post", name="Notes", metadata={"a": "b"}, expires_after={"anchor": "last_active_at", "days": 2}
            )
            self.assertEqual(made, await self.ask(client, "get", f"/{made['id']}"))
        self.assertTrue(made.pop("id").startswith("vs_"))
        created = made.pop("created_at")
        self.assertEqual(
            made,
            {
                "object": "vector_store",
                "name": "Notes",
                "description": None,
                "usage_bytes": 0,
                "file_counts": {"in_progress": 0, "completed": 0, "failed": 0, "cancelled": 0, "total": 0},
                "status": "completed",
                "expires_after": {"anchor": "last_active_at", "days": 2},
                "expires_at": created + 2 * 86_400,
                "last_active_at": created,
                "metadata": {"a": "b"},
            },
        )

    async def test_store_without_body_is_made(self) -> None:
        async with self.serving() as client:
            made = await self.ask(client, "post")
        self.assertEqual((made["name"], made["expires_after"], made["metadata"]), ("", None, {}))

    async def test_files_are_added_at_the_creation(self) -> None:
        files = [await sync_to_async(make_file)() for _ in range(3)]
        async with self.serving() as client:
            made = await self.ask(client, "post", file_ids=[file.uid for file in files])
            self.assertEqual((made["file_counts"]["in_progress"], made["status"]), (3, "in_progress"))

    async def test_unknown_file_leaves_no_store(self) -> None:
        foreign = await sync_to_async(make_file)("other")
        async with self.serving() as client:
            refused = await self.call(client, "post", file_ids=[foreign.uid])
        self.refused(refused, 400, "file_not_found", "file_ids[0]", foreign.uid)
        self.assertEqual(await VectorStore.objects.acount(), 0)

    async def test_changes_replace_only_given_fields(self) -> None:
        async with self.serving() as client:
            made = await self.ask(
                client, "post", name="Old", metadata={"a": "b"}, expires_after={"anchor": "last_active_at", "days": 2}
            )
            path = f"/{made['id']}"
            renamed = await self.ask(client, "post", path, name="New")
            self.assertEqual((renamed["name"], renamed["metadata"], renamed["expires_after"]["days"]), ("New", {"a": "b"}, 2))
            lasting = await self.ask(client, "post", path, expires_after=None, metadata={})
            self.assertEqual((lasting["expires_after"], lasting["expires_at"], lasting["metadata"]), (None, None, {}))
            self.assertEqual(await self.ask(client, "get", path), lasting)

    async def test_deleted_store_is_gone_and_the_file_stays(self) -> None:
        store = await sync_to_async(make_store)()
        await sync_to_async(add_text)(store, "Foxes hunt.")
        async with self.serving() as client:
            deleted = await self.ask(client, "delete", f"/{store.uid}")
            self.assertEqual(deleted, {"id": store.uid, "object": "vector_store.deleted", "deleted": True})
            self.refused(await self.call(client, "get", f"/{store.uid}"), 404, None, None, store.uid)
        self.assertEqual(await File.objects.acount(), 1)

    async def test_pages_have_all_stores_once(self) -> None:
        uids = [(await sync_to_async(make_store)()).uid for _ in range(5)]
        await sync_to_async(make_store)("other")
        async with self.serving() as client:
            first = await self.ask(client, "get", "?limit=2")
            self.assertEqual([one["id"] for one in first["data"]], uids[:2:-1])
            self.assertEqual((first["first_id"], first["last_id"], first["has_more"]), (uids[4], uids[3], True))
            next_page = await self.ask(client, "get", f"?limit=3&after={uids[3]}")
            self.assertEqual(([one["id"] for one in next_page["data"]], next_page["has_more"]), (uids[2::-1], False))
            back = await self.ask(client, "get", f"?limit=2&before={uids[0]}")
            self.assertEqual(([one["id"] for one in back["data"]], back["has_more"]), ([uids[2], uids[1]], True))
            oldest = await self.ask(client, "get", "?order=asc&limit=1")
            self.assertEqual(oldest["first_id"], uids[0])
            self.refused(await self.call(client, "get", "?after=vs_none"), 404, None, "after")

    async def test_stores_of_other_projects_are_not_found(self) -> None:
        store = await sync_to_async(make_store)("other")
        async with self.serving() as client:
            for method, path in (("get", ""), ("post", ""), ("delete", ""), ("get", "/files"), ("post", "/search")):
                with self.subTest(method=method, path=path):
                    refused = await self.call(
                        client, method, f"/{store.uid}{path}", **({"query": "x"} if path == "/search" else {})
                    )
                    self.refused(refused, 404, None, None, store.uid)

    @override_settings(RESPONSES_VECTOR_STORES_PER_PROJECT=1)
    async def test_limit_of_stores_is_refused(self) -> None:
        _, other = await sync_to_async(ApiKey.make)("other")
        async with self.serving() as client:
            await self.ask(client, "post")
            self.refused(await self.call(client, "post"), 400, "vector_stores_limit_exceeded", None, "1 vector stores")
            await self.ask(KeyedClient(other), "post")

    async def test_expired_store_names_the_reason(self) -> None:
        old = timezone.now() - timedelta(days=2)
        store = await sync_to_async(make_store)(expires_after_days=1, last_active_at=old, created_at=old)
        async with self.serving() as client:
            self.assertEqual((await self.ask(client, "get", f"/{store.uid}"))["status"], "expired")
            refused = await self.call(client, "post", f"/{store.uid}/search", query="x")
            self.refused(refused, 400, "vector_store_expired", None, "1 days")


class SearchTest(VectorStoreCase):
    async def test_search_returns_pages_of_results(self) -> None:
        store = await sync_to_async(make_store)()
        await sync_to_async(add_text)(store, "Foxes hunt at night.", "foxes.txt", {"year": 2020})
        await sync_to_async(add_text)(store, "Bread is sold at night.", "bread.txt", {"year": 2024})
        async with self.serving() as client:
            page = await self.ask(client, "post", f"/{store.uid}/search", query="fox night", rewrite_query=True)
            self.assertEqual(
                (page["object"], page["search_query"], page["has_more"], page["next_page"]),
                ("vector_store.search_results.page", ["fox night"], False, None),
            )
            self.assertEqual([one["filename"] for one in page["data"]], ["foxes.txt", "bread.txt"])
            self.assertEqual(set(page["data"][0]), {"file_id", "filename", "score", "attributes", "content"})
            self.assertEqual(page["data"][0]["content"], [{"type": "text", "text": "Foxes hunt at night."}])
            filters = {"type": "and", "filters": [{"type": "gte", "key": "year", "value": 2024}]}
            filtered = await self.ask(
                client, "post", f"/{store.uid}/search", query=["fox", "night"], filters=filters, max_num_results=1
            )
            self.assertEqual([one["attributes"] for one in filtered["data"]], [{"year": 2024}])
            threshold = page["data"][0]["score"]
            best = await self.ask(
                client,
                "post",
                f"/{store.uid}/search",
                query="fox night",
                ranking_options={"score_threshold": threshold, "ranker": "auto"},
            )
            self.assertEqual(len(best["data"]), 1)

    async def test_search_is_a_use_of_the_store(self) -> None:
        old = timezone.now() - timedelta(hours=1)
        store = await sync_to_async(make_store)(last_active_at=old)
        async with self.serving() as client:
            await self.ask(client, "post", f"/{store.uid}/search", query="fox")
        await store.arefresh_from_db()
        self.assertGreater(store.last_active_at, old + timedelta(minutes=30))
