"""Options of chat threads: own threads alone, titles, pins, groups by date, shared links, deletion, downloads."""

from __future__ import annotations

import re
from datetime import date
from typing import Any
from unittest import mock

import orjson
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.http import StreamingHttpResponse
from django.test import AsyncClient

from responses_app.models import AuditEntry, ChatThread, Membership, Response
from responses_app.web.chat import shared_threads, threads
from responses_app.web.chat.thread_markdown import fenced
from tests.support.api.case import HELLO, TOOL, WEATHER, ApiCase, record_text

SECRET_WORD = "hush-hush"
FILE = {"type": "input_file", "filename": "plan.txt", "file_data": "data:text/plain;base64,SGk="}
SOURCE = {"type": "url", "url": "https://example.com/snow"}
TOOL_RUN: list[dict[str, Any]] = [
    {"role": "user", "content": "And the **weather**?"},
    {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Oslo"}'},
    {"type": "function_call_output", "call_id": "call_1", "output": "```\nsnow"},
    {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Snow.</details>"}]},
    {"type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "snow", "sources": [SOURCE]}},
    {"role": "assistant", "content": "It snows."},
]
ENTRY = re.compile(r'<h2 data-group="([^"]*)">|<a href="/chat/(\w+)"[^>]*>([^<]*)</a>')


class ThreadOptionsTest(ApiCase):
    """Two people of a project, who chat with a replay engine."""

    ada: User
    eve: User

    @classmethod
    def setUpTestData(cls) -> None:
        super().setUpTestData()
        cls.ada, cls.eve = (User.objects.create_user(name) for name in ("ada", "eve"))
        for user in (cls.ada, cls.eve):
            Membership.objects.create(user=user, project=cls.key.project)

    async def asked(self, user: User, text: str | list[dict[str, Any]], **fields: Any) -> str:
        """Send a message from the chat page of `user`. Return the id of the response."""
        browser = await self.browser(user)
        secret = orjson.loads((await browser.get("/chat/secret")).content)["secret"]
        answer = await browser.post(
            "/v1/responses",
            orjson.dumps({"model": "m", "input": text, **fields}),
            content_type="application/json",
            headers={"Authorization": f"Bearer {secret}"},
        )
        self.assertEqual(answer.status_code, 200, answer.content)
        return str(orjson.loads(answer.content)["id"])

    async def browser(self, user: User) -> AsyncClient:
        """A browser in which `user` is signed in."""
        client = AsyncClient()
        await client.aforce_login(user)
        return client

    async def listed(self, user: User, query: str = "") -> list[tuple[str, str]]:
        """Return group and title of each thread in the list of a person."""
        page = (await (await self.browser(user)).get(f"/chat/threads{query}")).content.decode()
        group, entries = "", []
        for heading, _, title in ENTRY.findall(page):
            group = heading or group
            if not heading:
                entries.append((group, title))
        return entries

    async def test_the_list_has_own_threads_and_with_the_switch_all(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            await self.made(client, input="By a program")
            first = await self.asked(self.ada, "Of Ada")
            await self.asked(self.eve, "Of Eve")
            # Somebody else continues it: it stays in the list of both.
            await self.asked(self.eve, "And then?", previous_response_id=first)
            self.assertEqual(await self.listed(self.ada), [("Today", "Of Ada")])
            self.assertEqual(await self.listed(self.eve), [("Today", "Of Ada"), ("Today", "Of Eve")])
            everything = [("Today", title) for title in ("Of Ada", "Of Eve", "By a program")]
            self.assertEqual(await self.listed(self.ada, "?everything=1"), everything)
            self.assertEqual(await self.listed(self.ada, "?q=eve"), [])

    def test_groups_by_date(self) -> None:
        today = date(2026, 3, 4)
        for day, group in (
            (today, "Today"),
            (date(2026, 3, 5), "Today"),
            (date(2026, 3, 3), "Yesterday"),
            (date(2026, 2, 25), "Previous 7 days"),
            (date(2026, 2, 24), "February"),
            (date(2025, 12, 31), "December 2025"),
        ):
            with self.subTest(day=day):
                self.assertEqual(threads.date_group(day, today), group)

    async def test_a_thread_is_renamed_and_pinned_for_one_person(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3):
            old = await self.asked(self.ada, "Old")
            await self.asked(self.ada, "New")
            ada = await self.browser(self.ada)
            for action in ({"action": "rename", "title": "  A <b> \0 name "}, {"action": "pin"}, {"action": "odd"}):
                answer = await ada.post(f"/chat/{old}/options", action)
                self.assertEqual((answer.status_code, answer["Location"]), (302, f"/chat/{old}/options"))
            self.assertEqual(await self.listed(self.ada), [("Pinned", "A &lt;b&gt; name"), ("Today", "New")])
            self.assertIn("A &lt;b&gt; name", (await ada.get(f"/chat/{old}")).content.decode())
            self.assertEqual(await self.listed(self.eve), [])
            # A branch of the first message belongs to the thread.
            await self.asked(self.ada, "Old, edited", metadata={"branch_of": old})
            self.assertEqual(await self.listed(self.ada), [("Pinned", "A &lt;b&gt; name"), ("Today", "New")])
            await ada.post(f"/chat/{old}/options", {"action": "unpin"})
            await ada.post(f"/chat/{old}/options", {"action": "rename", "title": ""})
            self.assertEqual(await self.listed(self.ada), [("Today", "Old, edited"), ("Today", "New")])

    async def test_deletion_removes_all_branches_and_links(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            first = await self.asked(self.ada, "First")
            second = await self.asked(self.ada, "Second", previous_response_id=first)
            await self.asked(self.ada, "Edited", metadata={"branch_of": first})
            other = (await self.made(client))["id"]
            ada = await self.browser(self.ada)
            await ada.post(f"/chat/{second}/options", {"action": "share"})
            self.assertEqual((await ada.get(f"/chat/{second}/delete")).status_code, 405)
            self.assertContains(await ada.get(f"/chat/{second}/options"), "deletes 3 responses")
            await ada.post(f"/chat/{second}/delete")
            self.assertEqual([row.uid async for row in Response.objects.all()], [other])
            self.assertFalse(await ChatThread.objects.aexists())
            entry = await AuditEntry.objects.aget(action="chat.delete")
            self.assertEqual((entry.object, entry.actor), (f"conversation {second}", "ada"))

    async def test_strangers_change_nothing(self) -> None:
        async with self.serving(record_text(HELLO)):
            uid = await self.asked(self.ada, "Mine")
            mallory = await self.browser(await User.objects.acreate_user("mallory"))
            for path in (f"/chat/{uid}/options", f"/chat/{uid}/delete"):
                self.assertEqual((await mallory.post(path, {"action": "share"})).status_code, 404)
                self.assertEqual((await AsyncClient().post(path, {"action": "share"})).status_code, 403)
            self.assertTrue(await Response.objects.filter(uid=uid).aexists())
            self.assertFalse(await ChatThread.objects.aexists())

    async def test_a_link_shows_the_messages_until_it_is_revoked(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2):
            fields = {"instructions": SECRET_WORD, "metadata": {"who": SECRET_WORD}}
            first = await self.asked(self.ada, "A **question**", **fields)
            link = await self.shared(first)
            await self.asked(self.ada, "Too late", previous_response_id=first)
            page = (await AsyncClient().get(link)).content.decode()
            self.assertIn("A **question**", page)
            self.assertIn("Hello", page)
            for hidden in (SECRET_WORD, first, "Too late", "ada"):
                self.assertNotIn(hidden, page.replace("Shared", ""))
            for changed in (link[:-1], f"{link}x", "/shared/x", "/shared/%00"):
                self.assertEqual((await AsyncClient().get(changed)).status_code, 404)
            renewed = await self.shared(first)
            self.assertEqual((await AsyncClient().get(link)).status_code, 404)
            self.assertEqual((await AsyncClient().get(renewed)).status_code, 200)
            await Membership.objects.filter(user=self.ada).adelete()
            self.assertEqual((await AsyncClient().get(renewed)).status_code, 404)
            await Membership.objects.acreate(user=self.ada, project=self.key.project)
            await (await self.browser(self.ada)).post(f"/chat/{first}/options", {"action": "revoke"})
            self.assertEqual((await AsyncClient().get(renewed)).status_code, 404)
            entries = AuditEntry.objects.filter(actor="ada", object=f"conversation {first}").order_by("pk")
            actions = [entry.action async for entry in entries]
            self.assertEqual(actions, ["chat.share", "chat.share", "chat.unshare"])

    async def test_a_link_shows_what_a_client_sent_and_how_an_answer_ended(self) -> None:
        sent: list[dict[str, Any]] = [
            {"role": "developer", "content": SECRET_WORD},
            {"role": "user", "content": "And the weather?"},
            {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": f'{{"a":"{SECRET_WORD}"}}'},
            {"type": "function_call_output", "call_id": "call_1", "output": SECRET_WORD},
            {"role": "assistant", "content": "It **rains**."},
            {"role": "user", "content": "Thanks"},
        ]
        async with self.serving(record_text(HELLO)):
            link = await self.shared(await self.asked(self.ada, sent, max_output_tokens=16))
            await Response.objects.aupdate(status="cancelled")
            page = (await AsyncClient().get(link)).content.decode()
            parts = ("And the weather?", "Used the tool get_weather.", "It <strong>rains</strong>.", "Thanks", "Stopped.")
            self.assertEqual(sorted(parts, key=page.index), list(parts))
            self.assertNotIn(SECRET_WORD, page)

    async def test_links_have_a_limit_per_address(self) -> None:
        async with self.serving(record_text(HELLO)):
            link = await self.shared(await self.asked(self.ada, "Hi"))
            with mock.patch.object(shared_threads, "MAX_PER_MINUTE", 2):
                statuses = [(await AsyncClient().get(link)).status_code for _ in range(3)]
            self.assertEqual(statuses, [200, 200, 429])

    async def shared(self, uid: str) -> str:
        """Make a link to the thread of a response. Return its path."""
        ada = await self.browser(self.ada)
        await ada.post(f"/chat/{uid}/options", {"action": "share"})
        page = (await ada.get(f"/chat/{uid}/options")).content.decode()
        match = re.search(r">http://testserver(/shared/[^<]+)<", page)
        assert match
        choices = await ChatThread.objects.aget(share_key__gt="")
        self.assertEqual(await sync_to_async(lambda: choices.user.get_username())(), "ada")
        return match[1]


class ThreadExportTest(ApiCase):
    """A person of a project downloads threads that an API key made."""

    ada: User

    @classmethod
    def setUpTestData(cls) -> None:
        super().setUpTestData()
        cls.ada = User.objects.create_user("ada")
        Membership.objects.create(user=cls.ada, project=cls.key.project)

    async def download(self, path: str) -> tuple[bytes, str]:
        """Return the body and the name of a download."""
        browser = AsyncClient()
        await browser.aforce_login(self.ada)
        answer = await browser.get(path)
        self.assertEqual(answer.status_code, 200)
        assert isinstance(answer, StreamingHttpResponse)
        return b"".join([part async for part in answer]), answer["Content-Disposition"]

    async def test_markdown_has_the_turns_in_order(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 3) as client:
            first = (await self.made(client, input=TOOL_RUN, instructions="Be kind."))["id"]
            await self.made(client, input="Another branch", previous_response_id=first)
            sent = [{"role": "user", "content": [{"type": "input_text", "text": "Then\nbye"}, FILE]}]
            last = (await self.made(client, input=sent, previous_response_id=first))["id"]
            body, name = await self.download(f"/chat/{last}.md")
        text = body.decode()
        self.assertTrue(name.startswith('attachment; filename="and-the-weather.'), name)
        parts = (
            "# And the **weather**?\n",
            "## Instructions\n\nBe kind.",
            "## User · 20",
            "\n\nAnd the **weather**?",
            '**Call: get_weather** (Done)\n\nArguments:\n\n```json\n{\n  "city": "Oslo"\n}\n```\n\n',
            "Result:\n\n````\n```\nsnow\n````",
            "<details><summary>Reasoning</summary>\n\nSnow.&lt;/details>\n",
            "\n- https://example.com/snow\n",
            "It snows.\n\n",
            "## m\n\n",
            "Then\nbye\n\n*File: plan.txt*",
        )
        self.assertEqual(sorted(parts, key=text.find), list(parts), text)
        self.assertEqual([part for part in parts if part not in text], [], text)
        self.assertEqual(text.count("Hello"), 2)
        self.assertNotIn("Another branch", text)
        entry = await AuditEntry.objects.aget(action="response.export")
        self.assertEqual((entry.object, entry.actor), (f"conversation {last}", "ada"))

    async def test_the_result_of_a_call_stands_beside_the_call(self) -> None:
        async with self.serving(record_text(WEATHER), record_text(HELLO)) as client:
            first = await self.made(client, input="Weather?", tools=[TOOL])
            result = {"type": "function_call_output", "call_id": first["output"][-1]["call_id"], "output": "Rain"}
            last = (await self.made(client, input=[result], previous_response_id=first["id"]))["id"]
            text = (await self.download(f"/chat/{last}.md"))[0].decode()
        self.assertIn("**Call: get_weather** (Done)", text)
        self.assertIn("Result:\n\n```\nRain\n```\n\n## m\n\n", text)
        self.assertEqual(text.count("Rain"), 1)

    async def test_json_has_the_responses_of_the_api_with_their_input(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 2) as client:
            first = await self.made(client, input="One")
            second = await self.made(client, input="Two", previous_response_id=first["id"])
            body, _ = await self.download(f"/chat/{second['id']}.json")
        thread = orjson.loads(body)
        self.assertEqual(thread["title"], "One")
        inputs = [response.pop("input") for response in thread["responses"]]
        self.assertEqual([items[0]["content"][0]["text"] for items in inputs], ["One", "Two"])
        self.assertEqual(thread["responses"], [first, second])

    async def test_strangers_get_nothing(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            uid = (await self.made(client))["id"]
        mallory = AsyncClient()
        await mallory.aforce_login(await User.objects.acreate_user("mallory"))
        for form in ("md", "json"):
            self.assertEqual((await mallory.get(f"/chat/{uid}.{form}")).status_code, 404)
            self.assertEqual((await AsyncClient().get(f"/chat/{uid}.{form}")).status_code, 302)

    def test_no_line_closes_a_code_block(self) -> None:
        self.assertEqual(fenced("a ``` b"), "```\na ``` b\n```")
        self.assertEqual(fenced("````py\n```", "json"), "`````json\n````py\n```\n`````")
