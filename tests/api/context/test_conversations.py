"""Conversations: made, extended, paged, emptied and deleted."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from openai.types.conversations import Conversation as SdkConversation
from openai.types.conversations import ConversationDeletedResource, ConversationItemList

from responses_app.models import ApiKey, Conversation, ConversationItem, Item
from tests.support.api.conversation_case import ConversationCase, texts, user


class ConversationTest(ConversationCase):
    """The addresses of conversations themselves."""

    async def test_made_read_changed_and_deleted(self) -> None:
        async with self.serving() as client:
            made = await self.ask(client, "post", "")
            SdkConversation.model_validate(made, strict=True)
            self.assertEqual((made["object"], made["metadata"], type(made["created_at"])), ("conversation", {}, int))
            self.assertTrue(made["id"].startswith("conv_"))
            changed = await self.ask(client, "post", f"/{made['id']}", metadata={"topic": "a\0b"})
            self.assertEqual(changed, {**made, "metadata": {"topic": "a\0b"}})
            self.assertEqual(await self.ask(client, "get", f"/{made['id']}"), changed)
            gone = await self.ask(client, "delete", f"/{made['id']}")
            ConversationDeletedResource.model_validate(gone, strict=True)
            self.assertEqual(gone, {"id": made["id"], "object": "conversation.deleted", "deleted": True})
            for method, path in (
                ("get", ""),
                ("delete", ""),
                ("get", "/items"),
                ("get", "/items/msg_1"),
                ("delete", "/items/msg_1"),
            ):
                answer = await self.call(client, method, f"/{made['id']}{path}")
                self.refused(answer, 404, None, None, f"Conversation with id '{made['id']}' not found.")

    async def test_odd_bodies_are_refused_and_leave_nothing(self) -> None:
        async with self.serving() as client:
            twenty = [user(str(number)) for number in range(20)]
            full = await self.ask(client, "post", "", items=twenty, metadata={"a": "b"})
            self.assertEqual(texts(await self.listed(client, full["id"])), [str(number) for number in range(20)])
            counts = await Conversation.objects.acount(), await Item.objects.acount(), await ConversationItem.objects.acount()
            for path in ("", f"/{full['id']}/items"):
                for body, code, param in (
                    ({"items": [*twenty, user("x")]}, "array_above_max_length", "items"),
                    ({"items": "x"}, "invalid_type", "items"),
                    ({"items": [user("x"), {"type": "nonsense"}]}, "invalid_value", "items[1].type"),
                    ({"items": [user("x"), user("y", id="fc_1")]}, "invalid_value", "items[1].id"),
                    ({"items": [user("x")], "colour": "red"}, "unknown_parameter", "colour"),
                ):
                    self.refused(await self.call(client, "post", path, **body), 400, code, param)
                unknown = await self.call(client, "post", path, items=[{"type": "item_reference", "id": "msg_nowhere"}])
                self.refused(unknown, 404, None, "items")
            empty = await self.call(client, "post", f"/{full['id']}/items", items=[])
            self.refused(empty, 400, "array_below_min_length", "items")
            self.refused(await self.call(client, "post", f"/{full['id']}/items"), 400, "missing_required_parameter", "items")
            self.refused(await self.call(client, "post", f"/{full['id']}"), 400, "missing_required_parameter", "metadata")
            for bad, code, param in (
                ("x", "invalid_type", "metadata"),
                ({"a": 1}, "invalid_type", "metadata.a"),
                ({str(n): "" for n in range(17)}, "object_above_max_properties", "metadata"),
            ):
                self.refused(await self.call(client, "post", "", metadata=bad), 400, code, param)
            after = await Conversation.objects.acount(), await Item.objects.acount(), await ConversationItem.objects.acount()
            self.assertEqual(after, counts)

    async def test_another_project_sees_nothing(self) -> None:
        async with self.serving() as client:
            mine = await self.ask(client, "post", "", items=[user("secret")])
            item = (await self.listed(client, mine["id"]))[0]
            _, client.secret = await sync_to_async(ApiKey.make)("other")
            for method, path in (
                ("get", ""),
                ("post", ""),
                ("delete", ""),
                ("get", "/items"),
                ("post", "/items"),
                ("get", f"/items/{item['id']}"),
                ("delete", f"/items/{item['id']}"),
            ):
                body: dict[str, Any] = {"metadata": {}} if not path else {"items": [user("x")]}
                self.refused(await self.call(client, method, f"/{mine['id']}{path}", **body), 404, None, None, "not found")
            theirs = await self.ask(client, "post", "", items=[user("other", id=item["id"])])
            self.assertEqual(texts(await self.listed(client, theirs["id"])), ["other"])


class ItemsTest(ConversationCase):
    """Items in conversations."""

    async def test_added_items_come_back_in_the_order_of_the_request(self) -> None:
        async with self.serving() as client:
            uid = (await self.ask(client, "post", ""))["id"]
            empty = await self.ask(client, "get", f"/{uid}/items")
            self.assertEqual(empty, {"object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False})
            added = await self.ask(client, "post", f"/{uid}/items", items=[user("one"), user("two", id="msg_mine")])
            ConversationItemList.model_validate(added)
            self.assertEqual(texts(added["data"]), ["one", "two"])
            self.assertEqual([item["status"] for item in added["data"]], ["completed"] * 2)
            self.assertEqual(added["data"][1]["id"], "msg_mine")
            self.assertEqual(added["data"][0]["content"], [{"type": "input_text", "text": "one"}])
            self.assertEqual((added["first_id"], added["last_id"]), (added["data"][0]["id"], "msg_mine"))
            again = await self.call(client, "post", f"/{uid}/items", items=[user("three"), user("two", id="msg_mine")])
            self.refused(again, 400, "item_already_in_conversation", "items", "Item already in conversation")
            self.assertEqual(texts(await self.listed(client, uid)), ["one", "two"])

    async def test_pages_go_through_all_of_them_in_either_order(self) -> None:
        async with self.serving() as client:
            uid = (await self.ask(client, "post", "", items=[user(str(n)) for n in range(7)]))["id"]
            for order, expected_order in (("asc", "0123456"), ("desc", "6543210")):
                with self.subTest(order=order):
                    seen, after, more = "", "", True
                    while more:
                        page = await self.ask(client, "get", f"/{uid}/items?limit=3&order={order}{after}")
                        self.assertEqual((page["first_id"], page["last_id"]), (page["data"][0]["id"], page["data"][-1]["id"]))
                        seen += "".join(texts(page["data"]))
                        more, after = page["has_more"], f"&after={page['last_id']}"
                    self.assertEqual(seen, expected_order)
            self.assertEqual(texts((await self.ask(client, "get", f"/{uid}/items?limit=1"))["data"]), ["6"])
            for query, code, param in (
                ("limit=0", "integer_below_min_value", "limit"),
                ("limit=101", "integer_above_max_value", "limit"),
                ("order=up", "invalid_value", "order"),
                ("include=nonsense", "invalid_value", "include[0]"),
            ):
                self.refused(await self.call(client, "get", f"/{uid}/items?{query}"), 400, code, param)
            self.refused(
                await self.call(client, "get", f"/{uid}/items?after=msg_x"), 404, None, "after", "No item found with id"
            )

    async def test_an_item_is_read_and_taken_out(self) -> None:
        async with self.serving() as client:
            made = await self.ask(client, "post", "", items=[user("one"), user("two")])
            first, second = await self.listed(client, made["id"])
            self.assertEqual(await self.ask(client, "get", f"/{made['id']}/items/{first['id']}"), first)
            self.assertEqual(await self.ask(client, "delete", f"/{made['id']}/items/{first['id']}"), made)
            self.assertEqual(await self.listed(client, made["id"]), [second])
            for method in ("get", "delete"):
                self.refused(await self.call(client, method, f"/{made['id']}/items/{first['id']}"), 404, None, None)
            self.refused(await self.call(client, "get", f"/{made['id']}/items?after={first['id']}"), 404, None, "after")

    async def test_an_item_that_is_stored_elsewhere_is_linked_and_outlives_that_place(self) -> None:
        async with self.serving() as client:
            one = await self.ask(client, "post", "", items=[user("stored", id="msg_mine")])
            two = await self.ask(client, "post", "", items=[user("sent", id="msg_mine"), user("sent again", id="msg_mine")])
            self.assertEqual(texts(await self.listed(client, two["id"])), ["stored"])
            three = await self.ask(client, "post", "")
            reference = {"type": "item_reference", "id": "msg_mine"}
            added = await self.ask(client, "post", f"/{three['id']}/items", items=[reference])
            self.assertEqual(texts(added["data"]), ["stored"])
            self.assertEqual(await Item.objects.acount(), 1)
            await self.ask(client, "delete", f"/{one['id']}")
            self.assertEqual(texts(await self.listed(client, three["id"])), ["stored"])

    async def test_the_number_of_queries_does_not_grow_with_the_conversation(self) -> None:
        async with self.serving() as client:
            counts = []
            for size in (1, 20):
                uid = (await self.ask(client, "post", "", items=[user(str(n)) for n in range(size)]))["id"]
                async with self.queries() as queries:
                    await self.ask(client, "post", f"/{uid}/items", items=[user("x")])
                    await self.listed(client, uid)
                counts.append(len(queries))
            self.assertGreater(counts[0], 0)
            self.assertEqual(counts[0], counts[1])
