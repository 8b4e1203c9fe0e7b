"""Home page: models, health of the engines, example request."""

from __future__ import annotations

from django.contrib.auth.models import User

from responses_app.dialects.families.detection import Evidence, detect
from responses_app.engines.pool.engine import EnginePool
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Membership, Role
from tests.support.api.case import HELLO, ApiCase, record_text


class HomeTest(ApiCase):
    """With a scripted engine."""

    async def test_home_names_the_models_and_a_working_call(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            page = (await client.get("/", headers={"accept": "text/html"})).content.decode()
            self.assertInHTML('<code>m</code> <span class="status">Ready</span>', page)
            self.assertIn("curl http://testserver/v1/responses", page)

    async def test_home_shows_the_family_of_a_model_and_its_warnings(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            model = self.hub.served["m"]
            model.family = detect(Evidence(model_type="seed_oss"))
            self.assertContains(
                await client.get("/", headers={"accept": "text/html"}),
                "Seed-OSS (reasoning parser seed_oss, tool parser seed_oss), chosen by model_type",
            )
            model.family = detect(Evidence(model_type="<llama>"))
            self.assertContains(
                await client.get("/", headers={"accept": "text/html"}), "not recognised (model_type &#x27;&lt;llama&gt;&#x27;)"
            )

    async def test_an_unreachable_engine_is_shown(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.engine.fail_for()
            page = (await client.get("/", headers={"accept": "text/html"})).content.decode()
            self.assertInHTML('<span class="status failed">Away</span>', page)
            self.assertEqual((await client.get("/health")).status_code, 503)
            self.engine.recover()
            self.assertEqual((await client.get("/health")).status_code, 200)

    async def test_staff_see_each_engine_of_a_model(self) -> None:
        async with self.serving() as client:
            names = ("http://gpu-1:8000", "http://gpu-2:8000")
            pool = EnginePool({name: ReplayEngine([record_text(HELLO)], loop=True) for name in names})
            self.hub.served["m"].engine = pool
            await self.hub.start()
            self.assertNotContains(await client.get("/", headers={"accept": "text/html"}), "gpu-1")
            self.assertEqual((await self.post(client)).status_code, 200)
            await client.aforce_login(await User.objects.acreate_user("ada", is_staff=True))
            page = (await client.get("/", headers={"accept": "text/html"})).content.decode()
            busy = next(status.name for status in pool.statuses if status.requests)
            for name, figures in ((name, (1, 100) if name == busy else (0, 0)) for name in names):
                ready = '<span class="status">Ready</span>'
                row = f"<td><code>{name}</code></td><td>{ready}</td><td>0</td><td>{figures[0]}</td><td>{figures[1]} %</td>"
                self.assertInHTML(f"<tr>{row}</tr>", page)

    async def test_a_signed_in_user_sees_more_links(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            ada = await User.objects.acreate_user("ada")
            await client.aforce_login(ada)
            page = await client.get("/", headers={"accept": "text/html"})
            self.assertContains(page, "Sign out")
            self.assertContains(page, "You’re not a member of any project.")
            # A viewer may not use the chat.
            for role, links in ((Role.VIEWER, 0), (Role.MEMBER, 1)):
                await Membership.objects.aupdate_or_create(user=ada, project="p", defaults={"role": role})
                page = await client.get("/", headers={"accept": "text/html"})
                self.assertContains(page, "No responses in the last 24 hours")
                self.assertContains(page, ">Open chat</a>", links)
            self.assertContains(page, "curl http://testserver/v1/responses")
