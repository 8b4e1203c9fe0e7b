"""Page of a response whose process has ended: before and after another process continues it."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import AsyncClient

from responses_app.engines.replay.engine import Delay, Recording, Tokens
from responses_app.models import Event, Response
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from responses_app.runs.models import ServedModel
from responses_app.web.response.conversation import WAITING
from tests.support.api.case import ApiCase, record_text, tokens
from tests.support.waiting import eventually

# The conversation, the list of events, and the notices that an open page asks for.
TABS = ("", "/events", "/takeovers")
HEAD, TAIL = "<|channel|>final<|message|>Hello", " there!<|return|>"


class TakeoverPageTest(ApiCase):
    """Two processes on a single database."""

    async def page(self, uid: str, tab: str = "") -> str:
        """Return the page of the response, or of a tab."""
        browser = AsyncClient()
        await browser.aforce_login(await User.objects.aget(username="operator"))
        return (await browser.get(f"/responses/{uid}{tab}")).content.decode()

    async def test_the_page_says_that_another_process_continues(self) -> None:
        await User.objects.acreate_superuser("operator")
        held = Recording([*record_text(HEAD).steps, Delay(600), Tokens(tokens(TAIL))])
        async with self.serving(held, record_text(HEAD + TAIL)) as client:
            second = RunManager({"m": ServedModel("m", self.engine, "", {}, dialect=self.dialect)})
            uid = str((await self.made(client, background=True))["id"])
            await eventually(lambda: Event.objects.filter(packed__isnull=False).aexists())
            self.assertNotIn(WAITING, await self.page(uid))
            await self.crash()
            for tab in TABS:
                self.assertIn(WAITING, await self.page(uid, tab))
            await self.hub.close()
            await self.engine.start()
            manager.set_current(second)
            try:
                await second.start()
                await eventually(lambda: Response.objects.filter(uid=uid, ended_at__isnull=False).aexists())
                page = await self.page(uid)
                tabs = [await self.page(uid, tab) for tab in TABS]
            finally:
                await second.close()
                await self.engine.start()
        row = await Response.objects.aget(uid=uid)
        self.assertEqual((row.status, len(row.takeovers or ())), ("completed", 1))
        for tab in tabs:
            self.assertNotIn(WAITING, tab)
            self.assertIn("another process continued after", tab)
        self.assertIn('class="handover"', page)
        self.assertNotIn("Stalled", page)
