"""Menus of models on the pages: models that the project and the keys of the person may use."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import ApiKey, Membership, Project, Role
from responses_app.runs.models import ServedModel
from tests.support.api.case import HARMONY, ApiCase
from tests.support.web.page_case import made, text_of

PAST = datetime(2026, 1, 1, tzinfo=UTC)


class ModelMenusTest(ApiCase):
    """A person in the project `p`, and the models `m`, `n` and `o`."""

    ada: User

    @classmethod
    def setUpTestData(cls) -> None:
        super().setUpTestData()
        cls.ada = User.objects.create_user("ada", password="x")
        Membership.objects.create(user=cls.ada, project="p", role=Role.MEMBER)

    @asynccontextmanager
    async def visiting(self) -> AsyncIterator[AsyncClient]:
        """Yield the browser of the person."""
        async with self.serving():
            more = {name: ServedModel(name, ReplayEngine(), "", {}, dialect=HARMONY) for name in ("n", "o")}
            self.hub.served = {**self.hub.served, **more}
            self.hub.aliases = {"gpt": "m"}
            await self.hub.start()
            client = AsyncClient()
            await client.aforce_login(self.ada)
            yield client

    async def offered(self, client: AsyncClient, query: str = "") -> list[str]:
        """Return the models of the menu of /connect."""
        page = (await client.get(f"/connect{query}")).content.decode()
        return re.findall(r'<a href="\?model=(\w+)"', page)

    async def test_connect_offers_the_models_of_the_projects(self) -> None:
        async with self.visiting() as client:
            self.assertEqual(await self.offered(client), ["m", "n", "o"])
            project = await Project.objects.acreate(name="p", allowed_models=["n", "o"])
            self.assertEqual(await self.offered(client), ["n", "o"])
            self.assertContains(await client.get("/connect"), " --model n")
            self.assertEqual(await self.offered(AsyncClient()), ["m", "n", "o"])
            page = await client.get("/connect?model=m")
            self.assertContains(page, "Your projects and keys may not use this model.")
            await Membership.objects.acreate(user=self.ada, project="q", role=Role.MEMBER)
            self.assertEqual(await self.offered(client), ["m", "n", "o"])
            await Project.objects.acreate(name="q", allowed_models=["gone"])
            self.assertEqual(await self.offered(client), ["n", "o"])
            project.allowed_models = ["gone"]
            await project.asave()
            self.assertIn("may use none of the models", text_of((await client.get("/connect")).content.decode()))

    async def test_connect_offers_the_models_of_the_keys_of_the_person(self) -> None:
        make = sync_to_async(ApiKey.make)
        async with self.visiting() as client:
            key, _ = await make("one", "p", owner=self.ada, allowed_models=["m", "n"])
            await make("of another person", "p")
            await make("expired", "p", owner=self.ada, expires_at=PAST)
            await make("revoked", "p", owner=self.ada, revoked_at=PAST)
            self.assertEqual(await self.offered(client), ["m", "n"])
            await Project.objects.acreate(name="p", allowed_models=["n", "o"])
            self.assertContains(await client.get("/connect"), " --model n")
            self.assertEqual(await self.offered(client, "?model=m"), ["n"])
            key.allowed_models = []
            await key.asave()
            self.assertEqual(await self.offered(client), ["n", "o"])

    async def test_reruns_offer_the_models_of_the_project(self) -> None:
        row = await sync_to_async(made)("resp_1", model="gpt", project="p")
        other = await sync_to_async(made)("resp_2", model="m", project="p", rerun_of=row.uid)

        async def menus(columns: str = "") -> list[list[str]]:
            page = (await client.get(f"/responses/{row.uid}/rerun{columns}")).content.decode()
            selects = re.findall(r'<select name="model">(.*?)</select>', page)
            return [re.findall(r"<option(?: selected)?>(\w+)", select) for select in selects]

        async with self.visiting() as client:
            everything = ["gpt", "m", "n", "o"]
            self.assertEqual(await menus(), [everything] * 2)
            await Project.objects.acreate(name="p", allowed_models=["n"])
            self.assertEqual(await menus(), [["n"]] * 2)
            self.assertEqual(await menus(f"?column={other.uid}&column=o"), [["m", "n"], ["n"], ["n"]])
