"""List of threads and turns of a thread: permissions, titles, pages, search, branches."""

from __future__ import annotations

from typing import Any
from unittest import mock

import orjson
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from responses_app.models import ApiKey, Direction, Event, Item, Membership, Response
from responses_app.store.log.archive import archive_log
from responses_app.web.chat import threads
from responses_app.web.chat import turns as chat_turns
from responses_app.web.responses import search
from tests.support.api.case import HELLO, THOUGHT, ApiCase, record_text


class ThreadsTest(ApiCase):
    """Test case with a replay engine and a user in the project of the API key."""

    ada: User
    eve: User

    @classmethod
    def setUpTestData(cls) -> None:
        super().setUpTestData()
        cls.ada = User.objects.create_user("ada")
        cls.eve = User.objects.create_user("eve")
        Membership.objects.create(user=cls.ada, project=cls.key.project)
        Membership.objects.create(user=cls.eve, project="another")

    async def browser(self, user: User) -> AsyncClient:
        """A browser in which `user` is signed in."""
        client = AsyncClient()
        await client.aforce_login(user)
        return client

    async def turns(self, uid: str, more: str = "") -> Any:
        """Fetch the turns up to a response as the user ada."""
        answer = await (await self.browser(self.ada)).get(f"/chat/{uid}/turns{more}")
        return orjson.loads(answer.content)

    def page(self, words: str = "", before: str = "") -> threads.ThreadPage:
        """A page of ada's list."""
        from responses_app.access import permissions

        query = threads.ThreadQuery(self.key.project, self.ada, everything=True, words=words, before=before)
        return threads.page(permissions.visible_responses(self.ada), query)

    async def listed(self, **query: str) -> list[str]:
        """Return the titles of all threads on the page."""
        return [entry.title for entry in (await sync_to_async(self.page)(**query)).entries]

    async def test_threads_need_a_sign_in_and_membership(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
            for path in ("/chat", f"/chat/{uid}", f"/chat/{uid}/turns", "/chat/threads", "/chat/secret"):
                with self.subTest(path=path):
                    answer = await AsyncClient().get(path)
                    self.assertEqual((answer.status_code, answer["Location"]), (302, f"/sign-in?next={path}"))
            eve = await self.browser(self.eve)
            for path, status in ((f"/chat/{uid}", 404), (f"/chat/{uid}/turns", 404), ("/chat/threads?project=test", 403)):
                with self.subTest(path=path, status=status):
                    self.assertEqual((await eve.get(path)).status_code, status, path)
            self.assertEqual((await eve.get("/chat/secret?project=test")).status_code, 403)
            self.assertNotIn(uid, (await eve.get("/chat")).content.decode())
            ada = await self.browser(self.ada)
            self.assertNotIn(uid, (await ada.get("/chat")).content.decode())
            self.assertIn(uid, (await ada.get("/chat?everything=1")).content.decode())

    async def test_the_secret_of_the_page_asks_the_api(self) -> None:
        async with self.serving(record_text(HELLO)):
            ada = await self.browser(self.ada)
            secret = orjson.loads((await ada.get("/chat/secret")).content)["secret"]
            made = await ada.post(
                "/v1/responses",
                orjson.dumps({"model": "m", "input": "Hi"}),
                content_type="application/json",
                headers={"Authorization": f"Bearer {secret}"},
            )
            self.assertEqual(made.status_code, 200)
            self.assertEqual(await self.listed(), ["Hi"])

    async def test_a_thread_is_listed_once_by_its_newest_response_and_first_words(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            rules = {"type": "message", "role": "system", "content": "Be brief."}
            picture = {"type": "input_text", "text": 'Say\n"ü" \\ please'}
            first = await self.made(client, input=[rules, {"role": "user", "content": [picture]}])
            await self.made(client, input="Another one")
            last = await self.made(client, input="And then?", previous_response_id=first["id"])
            self.assertEqual(await self.listed(), ['Say "ü" \\ please', "Another one"])
            page = (await (await self.browser(self.ada)).get("/chat/threads?everything=1")).content.decode()
            self.assertIn(f"/chat/{last['id']}", page)
            self.assertNotIn(first["id"], page)

    async def test_a_thread_that_begins_with_a_picture_has_the_words_behind_it(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            row = await Response.objects.aget(uid=(await self.made(client))["id"])
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{'A' * 20_000}", "detail": "auto"}
        parts = [picture, {"type": "input_text", "text": "What is this?"}]
        body = {"id": "msg_1", "type": "message", "role": "user", "content": parts}
        await Item.objects.filter(response=row, direction=Direction.INPUT).aupdate(body=orjson.dumps(body).decode())
        self.assertEqual(await self.listed(), ["What is this?"])
        ada = await self.browser(self.ada)
        for path in ("/responses", f"/responses/{row.uid}"):
            self.assertIn("What is this?", (await ada.get(path)).content.decode().partition("<main")[2])

    async def test_pages_go_on_behind_the_last_one(self) -> None:
        size = threads.PAGE_SIZE
        async with self.serving(*[record_text(HELLO)] * (size + 2)) as client:
            for number in range(size + 2):
                await self.made(client, input=f"Number {number}")
            newest = await self.listed()
            self.assertEqual((len(newest), newest[0]), (size, f"Number {size + 1}"))
            ada = await self.browser(self.ada)
            next_cursor = (await ada.get("/chat?everything=1")).context["threads"].next
            self.assertEqual(await self.listed(before=next_cursor), ["Number 1", "Number 0"])

    async def test_a_search_finds_text_of_any_turn(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first = await self.made(client, input="Begin")
            await self.made(client, input='A 50% "Xylophone"_', previous_response_id=first["id"])
            await self.made(client, input="Elsewhere")
            self.assertEqual(await self.listed(words='"xylophone"'), ["Begin"])
            self.assertEqual(await self.listed(words="50%"), ["Begin"])
            self.assertEqual(await self.listed(words="e_"), [])

    async def test_a_search_reads_the_index_of_the_project_only_behind_the_newest_rows(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            await self.made(client, input="Xylophone")
            await self.made(client, input="Elsewhere")
            indexed = mock.patch.object(search, "search_indexed", wraps=search.search_indexed)
            with indexed as far:
                self.assertEqual(await self.listed(words="xylophone"), ["Xylophone"])
            far.assert_not_called()
            with indexed as far, mock.patch.object(search, "RECENT_WINDOW", 1):
                self.assertEqual(await self.listed(words="xylophone"), ["Xylophone"])
            far.assert_called_once()

    async def test_turns_have_their_branches(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            root = await self.made(client, input="Root")
            one = await self.made(client, input="One", previous_response_id=root["id"])
            two = await self.made(client, input="Two", previous_response_id=root["id"])
            leaf = await self.made(client, input="Leaf", previous_response_id=one["id"])
            result = await self.turns(leaf["id"])
            self.assertEqual([turn["id"] for turn in result["turns"]], [root["id"], one["id"], leaf["id"]])
            self.assertEqual(result["turns"][1]["siblings"], [one["id"], two["id"]])
            self.assertEqual(result["turns"][1]["input"][0]["content"][0]["text"], "One")
            self.assertEqual(result["turns"][1]["response"]["output"], one["output"])
            self.assertEqual(result["earlier"], 0)
            newest = await self.turns(root["id"], "?newest=1")
            self.assertEqual(newest["turns"][-1]["id"], leaf["id"])
            self.assertEqual((await self.turns(two["id"], "?newest=1"))["turns"][-1]["id"], two["id"])

    async def test_branches_of_a_first_message_know_each_other_and_are_listed_once(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first = await self.made(client, input="First")
            edited = await self.made(client, input="Edited", metadata={"branch_of": first["id"]})
            await self.made(client, input="Of its own")
            for uid in (first["id"], edited["id"]):
                with self.subTest(uid=uid):
                    self.assertEqual((await self.turns(uid))["turns"][0]["siblings"], [first["id"], edited["id"]])
            self.assertEqual(await self.listed(), ["Of its own", "Edited"])

    async def test_the_responses_of_a_conversation_are_one_thread_that_goes_on_in_it(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 5) as client:
            together = orjson.loads((await client.post("/v1/conversations", b"{}", content_type="application/json")).content)[
                "id"
            ]
            first = await self.made(client, input="First of all", conversation=together)
            second = await self.made(client, input="Then a walrus", conversation=together)
            await self.made(client, input="Elsewhere")
            self.assertEqual(await self.listed(), ["Elsewhere", "First of all"])
            self.assertEqual(await self.listed(words="first of"), ["First of all"])
            self.assertEqual(await self.listed(words="walrus"), ["First of all"])
            result = await self.turns(second["id"])
            self.assertEqual([turn["id"] for turn in result["turns"]], [first["id"], second["id"]])
            self.assertEqual([turn["siblings"] for turn in result["turns"]], [[first["id"]], [second["id"]]])
            self.assertEqual((result["conversation"], result["earlier"]), (together, 0))
            self.assertEqual((await self.turns(first["id"], "?newest=1"))["turns"][-1]["id"], second["id"])
            # What leaves it is a branch, which knows all that came before.
            branch = await self.made(client, input="Another way", previous_response_id=first["id"])
            result = await self.turns(branch["id"])
            self.assertEqual([turn["id"] for turn in result["turns"]], [first["id"], branch["id"]])
            self.assertEqual(result["turns"][1]["siblings"], [second["id"], branch["id"]])
            self.assertIsNone(result["conversation"])
            leaf = await self.made(client, input="Leaf", previous_response_id=branch["id"])
            result = await self.turns(leaf["id"])
            self.assertEqual([turn["id"] for turn in result["turns"]], [first["id"], branch["id"], leaf["id"]])

    async def test_the_times_are_those_of_the_log_sealed_or_not(self) -> None:
        async with self.serving(record_text(THOUGHT)) as client:
            uid = (await self.made(client))["id"]
            times = (await self.turns(uid))["turns"][0]["times"]
            self.assertIsNotNone(times["first_s"])
            row = await Response.objects.aget(uid=uid)
            fragments = (await self.turns(uid))["turns"][0]["fragments"]
            self.assertIn("Thought for ", "".join(fragments.values()))
            await sync_to_async(archive_log)(row.pk)
            self.assertFalse(await Event.objects.filter(response=row).aexists())
            archived = (await self.turns(uid))["turns"][0]
            self.assertEqual(archived["times"], times)
            self.assertEqual(archived["fragments"], fragments)
            answer = await (await self.browser(self.ada)).get(f"/chat/{uid}/times")
            self.assertEqual(orjson.loads(answer.content), times)
            self.assertEqual((await (await self.browser(self.eve)).get(f"/chat/{uid}/times")).status_code, 404)

    async def test_parameters_are_those_of_the_last_request_with_a_message(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            parameters: dict[str, Any] = {"top_p": 0.5, "metadata": {"a": "b", "branch_of": "resp_0"}, "tool_choice": "none"}
            first = await self.made(client, **parameters)
            result = (await self.turns(first["id"]))["parameters"]
            self.assertEqual(result, {**parameters, "metadata": {"a": "b"}})
            plain = await self.made(client, input="And?", previous_response_id=first["id"])
            self.assertEqual((await self.turns(plain["id"]))["parameters"], {})

    async def test_a_very_long_thread_has_only_the_latest_turns(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            last = await self.made(client, input="1")
            for number in "23":
                last = await self.made(client, input=number, previous_response_id=last["id"])
            with mock.patch.object(chat_turns, "MAX_TURNS", 2):
                result = await self.turns(last["id"])
            self.assertEqual((len(result["turns"]), result["earlier"]), (2, 2))

    async def test_a_link_to_go_on_from_a_response_leads_to_its_thread(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
            answer = await (await self.browser(self.ada)).get(f"/chat?previous_response_id={uid}")
            self.assertEqual((answer.status_code, answer["Location"]), (302, f"/chat/{uid}"))

    async def test_odd_addresses_are_no_mistake_of_ours(self) -> None:
        async with self.serving():
            ada = await self.browser(self.ada)
            for path, status in (
                ("/chat?previous_response_id=a/b", 404),
                ("/chat?q=%00a%00&before=%00", 200),
                ("/chat?project=%00", 403),
                ("/chat/resp_%00", 404),
                ("/chat/nothing/turns", 404),
            ):
                with self.subTest(path=path, status=status):
                    self.assertEqual((await ada.get(path)).status_code, status, path)

    async def test_a_thread_without_its_beginning_counts_the_missing_items(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            first = await self.made(client, input="First")
            second = await self.made(client, input="Second", previous_response_id=first["id"])
            await client.delete(f"/v1/responses/{first['id']}")
            result = await self.turns(second["id"])
            self.assertEqual(([turn["id"] for turn in result["turns"]], result["earlier"]), ([second["id"]], 2))
            self.assertEqual(await self.listed(), ["First"])

    async def test_a_superuser_without_any_thread_sees_an_empty_page(self) -> None:
        await ApiKey.objects.all().adelete()
        root = await User.objects.acreate_superuser("root")
        async with self.serving():
            page = (await (await self.browser(root)).get("/chat")).content.decode()
            self.assertIn("No conversations yet", page)
            self.assertIn("<noscript>", page)
