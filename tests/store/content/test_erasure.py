"""`manage.py erase`: a project, a conversation or a person leaves no row behind, and nobody else loses one."""

from __future__ import annotations

from io import StringIO
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import orjson
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from django.test import AsyncClient, Client
from django.utils import timezone

from responses_app.models import (
    BRANCH,
    ApiKey,
    AuditEntry,
    ChatThread,
    Conversation,
    Image,
    Item,
    LoginAttempt,
    Membership,
    Response,
    WebhookDelivery,
    WebhookEndpoint,
)
from responses_app.runs import maintenance
from responses_app.store import person
from responses_app.store.content import erasure
from tests.support.api.case import HARMONY, HELLO, ApiCase, KeyedClient, record_text, sse
from tests.support.engines.held_engine import HeldEngine
from tests.support.store.failing_deletions import fail_deletions
from tests.support.store.stored_logs import log_frames, stored_response
from tests.support.store.table_contents import contents

MARK = "zyzzyva"


def erase(*arguments: str) -> str:
    """Run the command and return the output."""
    out = StringIO()
    call_command("erase", *arguments, stdout=out)
    return out.getvalue()


def export(identifier: str, file: str) -> str:
    """Export the data of a person and return the output of the command."""
    out = StringIO()
    call_command("export", "--safety-identifier", identifier, file, stdout=out)
    return out.getvalue()


class EraseCommandTest(ApiCase):
    """Against the real database."""

    async def filled(self, client: AsyncClient) -> tuple[str, str]:
        """Return a conversation with a response, and a response forked from the first."""
        body = orjson.dumps({"items": [{"role": "user", "content": MARK}], "metadata": {"x": MARK}})
        answer = await client.post("/v1/conversations", body, content_type="application/json")
        uid = str(orjson.loads(answer.content)["id"])
        inside = await self.made(client, conversation=uid, input=MARK, metadata={"a": MARK})
        outside = await self.made(client, previous_response_id=inside["id"], input="Go on.")
        item = await Item.objects.filter(project=self.key.project).afirst()
        assert item is not None
        await Image.objects.acreate(item=item, url=f"https://example.com/{MARK}", data=b"x")
        return uid, str(outside["id"])

    async def test_a_project_leaves_nothing_and_others_keep_theirs(self) -> None:
        _, secret = await sync_to_async(ApiKey.make)("other")
        async with self.serving(*(record_text(HELLO) for _ in range(4))) as client:
            await self.filled(client)
            other = KeyedClient(secret)
            uid, outside = await self.filled(other)
            await Image.objects.all().adelete()
            output = await sync_to_async(erase)("--project", "test")
            for words in ("2 responses", "1 conversations", "5 items", "0 pages of archived logs", "Nothing was erased"):
                with self.subTest(words=words):
                    self.assertIn(words, output)
            self.assertEqual(await Response.objects.filter(project="test").acount(), 2)
            output = await sync_to_async(erase)("--project", "test", "--yes")
            self.assertNotIn("Nothing was erased", output)
            for model in (Response, Item, Conversation):
                with self.subTest(model=model):
                    self.assertEqual(await model.objects.filter(project="test").acount(), 0)
            self.assertEqual((await other.get(f"/v1/conversations/{uid}/items")).status_code, 200)
            self.assertEqual((await other.get(f"/v1/responses/{outside}")).status_code, 200)
            self.assertEqual(await ApiKey.objects.acount(), 2)
            await sync_to_async(erase)("--project", "other", "--keys", "--yes")
            self.assertNotIn(MARK, await sync_to_async(contents)())
            self.assertEqual(await ApiKey.objects.filter(project="other").acount(), 0)

    async def test_a_person_is_exported_and_leaves_nothing(self) -> None:
        file = Path(self.enterContext(TemporaryDirectory())) / "person.jsonl"
        async with self.serving(*(record_text(HELLO) for _ in range(4))) as client:
            answer = await client.post("/v1/conversations", b"{}", content_type="application/json")
            uid = orjson.loads(answer.content)["id"]
            mine = {"safety_identifier": 'user "7"', "input": MARK}
            first = await self.made(client, **mine, conversation=uid)
            second = await self.made(client, **mine, metadata={"a": MARK})
            third = await self.made(client, previous_response_id=second["id"], **mine)
            other = await self.made(client, metadata={"safety_identifier": 'user "7"'}, input="Hello")
            output = await sync_to_async(export)('user "7"', str(file))
            self.assertIn("3 responses", output)
            lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
            self.assertEqual([line["response"] for line in lines], [first, second, third])
            self.assertEqual([item["type"] for line in lines for item in line["input_items"]], ["message"] * 3)
            self.assertEqual(file.stat().st_mode & 0o777, 0o600)
            with self.assertRaises(CommandError):
                await sync_to_async(export)('user "7"', str(file))
            self.assertIn("Nothing was erased", await sync_to_async(erase)("--safety-identifier", 'user "7"'))
            with patch("responses_app.management.progress.FILE_EVERY_S", 0.0):
                output = await sync_to_async(erase)("--safety-identifier", 'user "7"', "--yes")
            self.assertRegex(output, r"responses: 3 of 3, [\d,]+ a second, 0 s left\n")
            self.assertIn("done: 3 responses\n", output)
            self.assertNotIn(MARK, await sync_to_async(contents)())
            self.assertEqual([row.uid async for row in Response.objects.all()], [other["id"]])
            self.assertEqual((await client.get(f"/v1/conversations/{uid}")).status_code, 200)
            for command in (erase, export):
                with self.assertRaises(CommandError):
                    await sync_to_async(command)("--safety-identifier", "nobody")

    async def test_a_conversation_goes_and_what_was_forked_from_it_still_answers(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO), record_text(HELLO)) as client:
            uid, outside = await self.filled(client)
            output = await sync_to_async(erase)("--conversation", uid, "--yes")
            self.assertIn("1 responses", output)
            self.assertEqual((await client.get(f"/v1/conversations/{uid}")).status_code, 404)
            self.assertEqual(await Response.objects.acount(), 1)
            await self.made(client, previous_response_id=outside, input="And?")
            self.assertIn(MARK, HARMONY.encoding.decode(list(self.engine.requests[-1].prompt)))

    async def test_a_conversation_that_nobody_needs_leaves_nothing(self) -> None:
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            uid, outside = await self.filled(client)
            await client.delete(f"/v1/responses/{outside}")
            await sync_to_async(erase)("--conversation", uid, "--yes")
        self.assertNotIn(MARK, await sync_to_async(contents)())
        self.assertEqual(await Item.objects.acount(), 0)

    async def test_an_erasure_that_was_killed_can_be_repeated(self) -> None:
        async with self.serving(*[record_text(HELLO)] * 4) as client:
            for steps in (1, 2):
                with self.subTest(steps=steps):
                    uid, outside = await self.filled(client)
                    await client.delete(f"/v1/responses/{outside}")
                    erasing = erasure.erase_conversation(await Conversation.objects.aget(uid=uid))
                    await sync_to_async(lambda steps=steps, erasing=erasing: list(islice(erasing, steps)))()
                    if await Conversation.objects.aexists():
                        await sync_to_async(erase)("--conversation", uid, "--yes")
                    self.assertEqual((await Response.objects.acount(), await Item.objects.acount()), (0, 0))

    def test_the_erasure_of_a_person_ends_with_the_responses(self) -> None:
        now = timezone.now()
        stored_response(log_frames(1), "resp_1")
        endpoint = WebhookEndpoint.objects.create(
            uid="we_1", project="p", url="https://a", event_types=[], secret=b"", created_at=now, updated_at=now
        )
        WebhookDelivery.objects.create(uid="msg_1", endpoint=endpoint, response_uid="resp_1", created_at=now, due_at=now)
        erasing = person.erase_person(Response.objects.all())
        while Response.objects.exists():
            next(erasing)
        self.assertFalse(WebhookDelivery.objects.exists())

    def test_a_person_leaves_no_account_session_or_attempt(self) -> None:
        User.objects.create_user("ada", password="countess of lovelace")
        bob = User.objects.create_user("bob")
        for user, project in (
            (User.objects.get(username="ada"), "hers"),
            (User.objects.get(username="ada"), "ours"),
            (bob, "ours"),
        ):
            Membership.objects.create(user=user, project=project)
        browser, other = Client(), Client()
        browser.post("/sign-in", {"username": "ada", "password": "wrong"})
        browser.post("/sign-in", {"username": "ada", "password": "countess of lovelace"})
        Client().post("/sign-in", {"username": "ada", "password": "wrong"})
        other.force_login(bob)
        output = erase("--user", "ada")
        self.assertIn("1 sessions, 2 memberships", output)
        self.assertIn("project 'hers', which stays", output)
        self.assertNotIn("'ours'", output)
        self.assertEqual(User.objects.count(), 2)
        erase("--user", "ada", "--yes")
        self.assertEqual(browser.get("/responses").status_code, 302)
        self.assertEqual(other.get("/responses").status_code, 200)
        self.assertEqual((User.objects.get(), Session.objects.count(), LoginAttempt.objects.count()), (bob, 1, 0))
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM auth_user WHERE username = 'ada'")
            self.assertEqual(cursor.fetchone(), (0,))

    def test_responses_that_cannot_be_erased_are_reported_and_the_others_go(self) -> None:
        for uid in ("resp_1", "resp_damaged", "resp_2"):
            stored_response(log_frames(1), uid)
        fail_deletions()
        with self.assertLogs("responses.batches", "WARNING"), self.assertRaisesRegex(CommandError, "1 responses could not"):
            erase("--project", "p", "--yes")
        self.assertEqual(Response.objects.get().uid, "resp_damaged")
        self.assertEqual(AuditEntry.objects.filter(action="erase").values_list("object", "project").get(), ("project p", "p"))

    def test_titles_and_links_of_chats_end_with_the_last_response_of_their_thread(self) -> None:
        ada = User.objects.create_user("ada")
        for uid in ("resp_gone", "resp_root", "resp_other"):
            ChatThread.objects.create(user=ada, project="p", thread=uid, title=f"{MARK} {uid}", share_key="key", shared_uid=uid)
        # A branch of the first message and a later turn keep their thread.
        stored_response(log_frames(1), "resp_branch", metadata={BRANCH: "resp_root"}, thread="resp_branch")
        stored_response(log_frames(1), "resp_later", thread="resp_other")
        list(maintenance.retention_due(timezone.now()))
        self.assertEqual({row.thread for row in ChatThread.objects.all()}, {"resp_root", "resp_other"})
        self.assertIn("2 choices for chat threads", erase("--project", "p", "--yes"))
        self.assertNotIn(MARK, contents())

    async def test_a_response_that_begins_meanwhile_is_left_with_all_that_it_needs(self) -> None:
        self.engine = HeldEngine()
        # Of a process that has died, so the erasure waits for the end in vain.
        await sync_to_async(stored_response)(log_frames(1), "resp_old", project="test", ended_at=None)
        async with self.serving(record_text(HELLO), record_text(HELLO)) as client:
            answer = await client.post("/v1/conversations", b"{}", content_type="application/json")
            uid = orjson.loads(answer.content)["id"]
            steps = erasure.erase_project("test")
            with patch.object(erasure, "CANCEL_TIMEOUT_S", 0.0):
                self.assertEqual(await sync_to_async(next)(steps), ("responses stopped", 1))
            response = await self.post(client, stream=True, input=MARK, conversation=uid)
            parts = [await anext(aiter(response.streaming_content))]
            try:
                done = await sync_to_async(lambda: dict(steps))()
                self.assertEqual((done["responses"], done[erasure.LEFT]), (1, 1))
            finally:
                self.engine.gate.set()
            parts += [part async for part in response.streaming_content]
            events = sse(b"".join(parts))
            self.assertEqual(events[-1]["type"], "response.completed")
            await self.made(client, input="Go on.", conversation=uid)
            self.assertIn(MARK, HARMONY.encoding.decode(list(self.engine.requests[-1].prompt)))
            output = await sync_to_async(erase)("--project", "test", "--yes")
        self.assertNotIn("began meanwhile", output)
        self.assertNotIn(MARK, await sync_to_async(contents)())
        self.assertEqual(await Item.objects.acount() + await Conversation.objects.acount(), 0)

    def test_missing_subjects_are_reported(self) -> None:
        wrong: list[tuple[list[Any], str]] = [
            # Requests that other tests sent for a project "none" were refused, and are noted.
            (["--project", "never_named"], "nothing of a project 'never_named'"),
            (["--conversation", "conv_none"], "no conversation 'conv_none'"),
            (["--user", "none"], "no account 'none'"),
            (["--user", "none", "--keys"], "--keys goes with --project"),
            (["--user", "a", "--project", "b"], "not allowed with"),
            ([], "one of the arguments"),
        ]
        for arguments, words in wrong:
            with self.subTest(arguments=arguments, words=words), self.assertRaisesRegex(CommandError, words):
                erase(*arguments)
