"""Project of `django-admin startproject` with an own account model and a prefix, under uvicorn: its pages and the API."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.sync.client import connect

from responses_app.apps import PAGE
from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import ROLE, socket_dir
from responses_app.server.cli.model_specs import HARMONY
from tests.support import plain_http
from tests.support.server.serve_command import Server, free_port
from tests.support.waiting import wait_until

MODEL = "from django.contrib.auth.models import AbstractUser\nclass Person(AbstractUser):\n    pass\n"
ASGI = "import os\nos.environ.setdefault('DJANGO_SETTINGS_MODULE', 'mysite.settings')\nfrom project.asgi import application\n"
PAGE_SETTINGS = re.findall(r"```python\n(# mysite/settings.py.*?)```", (ROOT / PAGE).read_text(), re.DOTALL)[0]
URLS = "from django.urls import include, path\nurlpatterns = [path('ai/', include('project.urls'))]\n"


class Site:
    """Project in `folder` whose tables are in a database of the Postgres of `server`."""

    def __init__(self, folder: Path, server: Server, tape: str) -> None:
        self.folder = folder
        self.environ = {
            name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE")
        }
        self.environ |= {"PYTHONPATH": str(ROOT), "RESPONSES_DATA_DIR": str(folder / "files")}
        self.environ["RESPONSES_MODELS"] = f"tape={tape}&tokenizer={HARMONY}"
        server.sql(f"CREATE DATABASE startproject OWNER {ROLE}")
        self.run("-m", "django", "startproject", "mysite", ".")
        self.run("manage.py", "startapp", "people")
        (folder / "people/models.py").write_text(MODEL)
        (folder / "mysite/asgi.py").write_text(ASGI)
        (folder / "mysite/urls.py").write_text(URLS)
        with (folder / "mysite/settings.py").open("a") as text:
            text.write(PAGE_SETTINGS)
            host = str(socket_dir(server.folder))
            text.write(f"DATABASES['default'] |= {{'NAME': 'startproject', 'USER': {ROLE!r}, 'HOST': {host!r}}}\n")
            text.write("AUTH_USER_MODEL = 'people.Person'\nINSTALLED_APPS += ['people']\n")

    def run(self, *arguments: str, is_refused: bool = False) -> str:
        """Run Python with `arguments` in the folder and return what it prints."""
        command = [sys.executable, *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=self.environ, capture_output=True, text=True, check=False, timeout=180
        )
        assert (done.returncode != 0) is is_refused, done.stdout + done.stderr
        return done.stdout + (done.stderr if is_refused else "")


@pytest.fixture(scope="module")
def site(shared: Server, tape: str, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Make the project and its tables."""
    site = Site(tmp_path_factory.mktemp("startproject"), shared, tape)
    site.run("manage.py", "makemigrations", "people")
    site.run("manage.py", "migrate", "--verbosity=0")
    return site


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    """Serve the project under uvicorn and yield its address."""
    port, log = free_port(), site.folder / "uvicorn.log"
    with log.open("wb") as out:
        command = [sys.executable, "-m", "uvicorn", "mysite.asgi:application", "--port", str(port)]
        process = subprocess.Popen(command, cwd=site.folder, env=site.environ, stdout=out, stderr=out)

    def is_ready() -> bool:
        assert process.poll() is None, log.read_text()
        return "startup complete" in log.read_text()

    try:
        wait_until(is_ready, limit_s=120, poll_s=0.1)
        yield f"http://127.0.0.1:{port}/ai"
    finally:
        process.terminate()
        process.wait(60)
    assert "Traceback" not in log.read_text()


def test_response_and_its_pages_for_an_account_of_the_project(site: Site, address: str) -> None:
    key = site.run("manage.py", "createkey", "mine").split()[-1]
    body = {"model": "tape", "input": "Hi"}
    answer = plain_http.post(f"{address}/v1/responses", json=body, headers={"Authorization": f"Bearer {key}"}, timeout=180)
    assert "Hello there!" in answer.text
    link = site.run("manage.py", "signin", "--url", address).split()[-1]
    with plain_http.client(follow_redirects=True, timeout=60) as browser:
        assert browser.get(link).status_code == 200
        for path in ("/responses", f"/responses/{answer.json()['id']}", "/chat", "/keys", "/admin/people/person/"):
            page = browser.get(address + path)
            assert (page.status_code, page.url.path) == (200, f"/ai{path}"), page.text[:500]
            assert not re.findall(r'(?:href|action|src|data-[a-z]+)="(/(?!ai/|static/)[^"]*)"', page.text)
        assert f"{address}/v1" in browser.get(f"{address}/keys").text


def test_api_below_a_prefix_is_the_api(address: str) -> None:
    refusal = plain_http.post(f"{address}/v1/messages", json={})
    assert (refusal.status_code, refusal.json()["type"]) == (401, "error")
    assert plain_http.get(f"{address}/v1/nothing").json()["error"]["message"].startswith("Invalid URL (GET /ai/v1/nothing)")
    assert plain_http.get(f"{address}/health/live").status_code == 200
    # The root belongs to the project.
    assert plain_http.get(address.removesuffix("/ai") + "/v1/models").headers["content-type"].startswith("text/html")


def test_websocket_below_a_prefix_answers(site: Site, address: str) -> None:
    key = site.run("manage.py", "createkey", "socket").split()[-1]
    with connect(
        address.replace("http", "ws") + "/v1/responses", additional_headers={"Authorization": f"Bearer {key}"}
    ) as socket:
        socket.send(json.dumps({"type": "response.create", "model": "tape", "input": "Hi"}))
        assert json.loads(socket.recv(timeout=60))["type"] == "response.created"


def test_people_of_the_project_are_in_the_admin(site: Site) -> None:
    code = "from django.contrib import admin; from people.models import Person; print(type(admin.site.get_model_admin(Person)))"
    assert "AuditedUserAdmin" in site.run("manage.py", "shell", "--verbosity=0", "-c", code)


@pytest.mark.parametrize(
    ("command", "start"),
    [
        ("migrate", "?: (verbatim.E004) The database"),
        ("createkey mine", "CommandError: the database"),
        ("doctor", "FAILED"),
        ("createsuperuser --noinput --username a --email a@b.c", "manage.py: the database"),
        ("showmigrations", "manage.py: the database"),
    ],
)
def test_database_that_is_away_is_named_in_a_sentence(site: Site, command: str, start: str) -> None:
    settings = site.folder / "mysite/settings.py"
    text = settings.read_text()
    settings.write_text(f"{text}DATABASES['default'] |= {{'HOST': '127.0.0.1', 'PORT': '1'}}\n")
    try:
        printed = site.run("manage.py", *command.split(), is_refused=True)
    finally:
        settings.write_text(text)
    assert re.search(rf"^{re.escape(start)}.* does not answer \(connection failed", printed, re.MULTILINE | re.IGNORECASE), (
        printed
    )
    assert "Start Postgres, or correct DATABASES in the settings of the project" in printed
    assert "Traceback" not in printed
    assert "pool" not in printed


def test_serve_names_the_asgi_server_of_a_project(site: Site) -> None:
    assert "uvicorn mysite.asgi:application" in site.run("manage.py", "serve", is_refused=True)
