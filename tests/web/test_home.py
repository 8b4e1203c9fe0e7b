"""Home page: models, health of the engines, example request."""

from __future__ import annotations

from django.contrib.auth.models import User

from responses_app.dialects.families.detection import Evidence, detect
from tests.support.api.case import ApiCase


class HomeTest(ApiCase):
    """With a scripted engine."""

    async def test_home_names_the_models_and_a_working_call(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            page = (await client.get("/")).content.decode()
            self.assertInHTML('<code>m</code> <span class="ok">ready</span>', page)
            self.assertIn("curl http://testserver/v1/responses", page)

    async def test_home_shows_the_family_of_a_model_and_its_warnings(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            model = self.hub.served["m"]
            model.family = detect(Evidence(model_type="seed_oss"))
            self.assertContains(
                await client.get("/"), "Seed-OSS (reasoning parser seed_oss, tool parser seed_oss), chosen by model_type"
            )
            model.family = detect(Evidence(model_type="<llama>"))
            self.assertContains(await client.get("/"), "not recognised (model_type &#x27;&lt;llama&gt;&#x27;)")

    async def test_an_unreachable_engine_is_shown(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.engine.fail_for()
            page = (await client.get("/")).content.decode()
            self.assertInHTML('<span class="bad">engine unreachable</span>', page)
            self.assertEqual((await client.get("/health")).status_code, 503)
            self.engine.recover()
            self.assertEqual((await client.get("/health")).status_code, 200)

    async def test_a_signed_in_user_sees_more_links(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            await client.aforce_login(await User.objects.acreate_user("ada"))
            self.assertContains(await client.get("/"), "Sign out")
