"""Page of the models: state, family, abilities, and the command of the server."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import override_settings

from responses_app.engine_interface import EngineUnavailable
from responses_app.engines.replay.engine import ReplayEngine
from responses_app.models import Membership, Role
from tests.support.api.case import HELLO, ApiCase, record_text

COMMAND = "bin/serve --model m"
REAL_MODEL = "<code>bin/serve --model Qwen/Qwen3-0.6B</code>"
# Without it, the key of the requests marks a client of the API.
BROWSER = {"accept": "text/html"}


class LoadingEngine(ReplayEngine):
    """Engine that is not loaded yet, as vLLM is in this process during a download."""

    @property
    def supports_images(self) -> bool:
        """Raise EngineUnavailable."""
        raise EngineUnavailable("not loaded")

    async def is_healthy(self) -> bool:
        """Return False."""
        return False


class ModelPagesTest(ApiCase):
    """With a scripted engine."""

    async def test_models_page_shows_context_and_abilities_of_a_ready_model(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            page = (await client.get("/models", headers=BROWSER)).content.decode()
            self.assertInHTML('<td data-name="State"><span class="status">Ready</span></td>', page)
            self.assertIn(f"{self.engine.max_model_len:,} tokens", page)
            self.assertInHTML('<th scope="col">Supports</th>', page)
            self.assertNotIn("http-equiv", page)
            self.assertInHTML('<a href="/chat?model=m">Chat</a>', page)
            self.assertInHTML('<a href="/connect?model=m">Connect a client</a>', page)
            self.assertInHTML('<a href="/responses?model=m">Responses</a>', page)
            self.engine.fail_for()
            answer = await client.get("/models", headers=BROWSER)
            self.assertContains(answer, '<span class="status failed">Away</span>')
            self.assertContains(answer, '<meta http-equiv="refresh" content="5">')

    async def test_download_is_shown_and_requests_get_503_until_the_model_is_ready(self) -> None:
        async with self.serving(record_text(HELLO)) as client:
            percent = 40
            model = self.hub.served["m"]
            await model.open()
            model.downloaded, self.hub.opening = (lambda: percent), True
            engine, model.engine = model.engine, LoadingEngine([])
            for path in ("/models", "/"):
                self.assertContains(await client.get(path, headers=BROWSER), "Downloading 40 %")
            self.assertContains(await client.get("/models", headers=BROWSER), '<progress max="100" value="40"')
            response = await self.post(client)
            self.assertEqual((response.status_code, response.headers["Retry-After"]), (503, "2"))
            self.assertIn("The model 'm' is being downloaded (40 %). Try again", response.json()["error"]["message"])
            percent = 100
            self.assertContains(await client.get("/models", headers=BROWSER), '<span class="status in_progress">Loading</span>')
            self.assertIn("The model 'm' is being loaded.", (await self.post(client)).json()["error"]["message"])
            model.engine, self.hub.opening = engine, False
            self.assertEqual((await self.post(client)).status_code, 200)
            self.assertContains(await client.get("/models", headers=BROWSER), '<span class="status">Ready</span>')

    async def test_a_viewer_sees_no_link_to_the_chat(self) -> None:
        ada = await User.objects.acreate_user("ada")
        membership = await Membership.objects.acreate(user=ada, project="p", role=Role.VIEWER)
        async with self.serving() as client:
            await self.hub.start()
            await client.aforce_login(ada)
            self.assertNotContains(await client.get("/models", headers=BROWSER), "/chat")
            membership.role = Role.MEMBER
            await membership.asave()
            self.assertContains(await client.get("/models", headers=BROWSER), '<a href="/chat?model=m">Chat</a>')

    @override_settings(RESPONSES_SERVE_COMMAND=COMMAND)
    async def test_staff_see_the_command_that_has_started_the_server(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.assertNotContains(await client.get("/models", headers=BROWSER), COMMAND)
            await client.aforce_login(await User.objects.acreate_user("ada", is_staff=True))
            self.assertContains(await client.get("/models", headers=BROWSER), COMMAND)

    async def test_pages_name_a_real_model_where_demo_models_alone_are_served(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            await client.aforce_login(await User.objects.acreate_user("ada", is_staff=True, is_superuser=True))
            for source, count in (("/srv/models/demo-chat", 1), ("/srv/models/other", 0)):
                self.hub.served["m"].source = source
                for path in ("/", "/models", "/chat"):
                    self.assertContains(await client.get(path, follow=True, headers=BROWSER), REAL_MODEL, count)
