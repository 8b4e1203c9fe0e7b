"""Page of the configurations of clients: readable without JavaScript, with the facts of the model."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Browser, expect

from responses_app.connect.agents.table import AGENTS
from responses_app.runs import manager
from responses_app.runs.manager import RunManager
from tests.support.api.case import ApiCase
from tests.support.server.serve_command import Server


class ConnectPageTest(ApiCase):
    """With a scripted engine."""

    async def test_page_shows_each_client_with_the_address_and_the_model(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            page = (await client.get("/connect")).content.decode()
            for name, agent in AGENTS.items():
                self.assertInHTML(f'<h2 id="{name}-title">{agent.title}</h2>', page)
                self.assertIn(f">.venv/bin/python manage.py connect {name} --url http://testserver --model m", page)
            self.assertIn("base_url = &quot;http://testserver/v1&quot;", page)
            self.assertIn(
                "131,072 tokens of context, efforts low, medium, high, takes no pictures", page.replace("</strong>", "")
            )
            self.assertIn("YOUR_API_KEY", page)
            self.assertIn("export DEFAULT_MODEL_METADATA=&#x27;{&quot;capabilities&quot;: {", page)
            self.assertContains(await client.get("/", headers={"accept": "text/html"}), 'href="/connect"')

    async def test_the_page_of_the_keys_leads_here_and_a_server_without_models_says_so(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.assertNotContains(await client.get("/connect"), 'href="/keys"')
            await client.aforce_login(await User.objects.acreate_superuser("root", "", "x"))
            self.assertContains(await client.get("/keys"), '<a href="/connect">Clients</a>', html=True)
            self.assertContains(await client.get("/connect"), 'aria-current="page">Clients</a>')
            manager.set_current(RunManager({}))
            self.assertContains(await client.get("/connect"), "No models.")

    async def test_unknown_model_is_404(self) -> None:
        async with self.serving() as client:
            await self.hub.start()
            self.assertEqual((await client.get("/connect?model=m")).status_code, 200)
            self.assertEqual((await client.get("/connect?model=nope")).status_code, 404)


@pytest.mark.browser
def test_connect_page_opens_one_client_at_a_time_without_scripts(chat_server: Server, chromium: Browser) -> None:
    page = chromium.new_page(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    page.goto(f"{chat_server.url}/connect")
    first, last = next(iter(AGENTS)), list(AGENTS)[-1]
    expect(page.locator(f"#{first}-command")).to_be_visible()
    expect(page.locator(f"#{last}-command")).to_be_hidden()
    page.get_by_role("heading", name=AGENTS[last].title).click()
    expect(page.locator(f"#{last}-command")).to_be_visible()
    expect(page.locator(f"#{first}-command")).to_be_hidden()
    page.close()
