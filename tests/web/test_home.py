"""Home page: models, health of the engines, example request."""

from __future__ import annotations

from django.contrib.auth.models import User

from tests.support.api.case import ApiCase


class HomeTest(ApiCase):
    """With a scripted engine."""

    async def test_home_names_the_models_and_a_working_call(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            page = (await client.get("/")).content.decode()
            self.assertInHTML('<code>m</code> <span class="ok">ready</span>', page)
            self.assertIn("curl http://testserver/v1/responses", page)

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
