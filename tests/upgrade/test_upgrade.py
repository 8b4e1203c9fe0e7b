"""Upgrade from version 0.1.0: a database and files of that commit are migrated, and every route and page opens the old rows."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import default_url
from responses_app.server.postgres.cluster import Postgres
from responses_app.server.postgres.programs import program_folder
from tests.support.old_version import API_KEY, FOLDER, SECRET_KEY, write_tape
from tests.support.server.requests import call, create, replay, wait_ended
from tests.support.server.serve_command import EmptyServer, Server

BODIES: dict[str, Any] = json.loads((FOLDER / "bodies.json").read_text())
RUNNING: str = BODIES.pop("running")
# Containers expire after a time without use.
for _container in BODIES["containers"]["data"]:
    del _container["status"]
OLD = [path.removeprefix("responses/") for path in BODIES if re.fullmatch(r"responses/\w+", path)]
(STORE,) = (path.split("/")[1] for path in BODIES if re.fullmatch(r"vector_stores/\w+/files", path))
(CONTAINER,) = (path.split("/")[1] for path in BODIES if re.fullmatch(r"containers/\w+/files", path))
(FILE,) = (path.split("/")[1] for path in BODIES if re.fullmatch(r"files/[\w-]+", path))
CONTAINER_FILE = BODIES[f"containers/{CONTAINER}/files"]["data"][0]["id"]
ITEM = BODIES[f"responses/{OLD[0]}"]["output"][0]["id"]
# Pages without a stored object of 0.1.0, and pages that end a session or wait for events.
OTHER_PAGES = re.compile(
    r"sign-out|sign-in|shared|webhook|saved-view|mcp-server-test|live|chat-thread|response-image|rerun-column|rerun-context"
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of this commit, started on the old database."""
    folder = tmp_path_factory.mktemp("upgrade")
    data = folder / "data"
    with Postgres(data):
        script = gzip.decompress((FOLDER / "database.sql.gz").read_bytes())
        psql, options = str(program_folder(None) / "psql"), ("--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1")
        subprocess.run([psql, *options, "--output=/dev/null", default_url(data)], input=old_schema(script), check=True)
    shutil.copytree(FOLDER / "files", data / "files")
    # Expired containers stay, however old the data is.
    environ = {"SECRET_KEY": SECRET_KEY, "RESPONSES_API_KEY": API_KEY, "RESPONSES_KEEP_CONTAINERS": "off"}
    server = EmptyServer(data, "--engine", write_tape(folder), root=ROOT, before=(), **environ)
    try:
        yield server.ready()
    finally:
        server.end()


def old_schema(script: bytes) -> bytes:
    """Return the dump without the statement that makes the schema, which exists."""
    return script.replace(b"CREATE SCHEMA public;", b"")


@pytest.fixture(scope="module")
def visitor(server: Server) -> Iterator[httpx2.Client]:
    """A browser of the operator, who is signed in."""
    link = server.manage("signin", "--url", server.url, SECRET_KEY=SECRET_KEY).split()[-1]
    with httpx2.Client(base_url=server.url, follow_redirects=True, timeout=60) as client:
        page = client.get(link)
        token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
        if "sign-in" in str(page.url):
            assert token is not None
            page = client.post(link, data={"csrfmiddlewaretoken": token[1]}, headers={"Referer": server.url})
        assert page.status_code == 200
        yield client


def assert_contains(new: Any, old: Any, path: str) -> None:
    """Check that a body has all fields and values of an earlier one; fields may have been added."""
    if isinstance(old, dict):
        assert isinstance(new, dict), path
        for name, value in old.items():
            assert_contains(new.get(name, "missing"), value, f"{path}.{name}")
    elif isinstance(old, list):
        assert len(new) == len(old), path
        for place, (one, other) in enumerate(zip(new, old, strict=True)):
            assert_contains(one, other, f"{path}[{place}]")
    else:
        assert new == old, path


@pytest.mark.parametrize("path", sorted(BODIES))
def test_an_object_of_the_old_version_is_the_same(server: Server, path: str) -> None:
    answer = call(server, "GET", path)
    assert answer.status_code == 200, answer.text
    assert_contains(answer.json(), BODIES[path], path)


@pytest.mark.parametrize("uid", OLD)
def test_the_log_of_an_old_response_is_replayed(server: Server, uid: str) -> None:
    events = replay(server, uid)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert_contains(events[-1]["response"], BODIES[f"responses/{uid}"], uid)


def test_bytes_of_old_files_are_read_and_searched(server: Server) -> None:
    assert call(server, "GET", f"files/{FILE}/content").content == b"Foxes hunt at night.\n"
    assert call(server, "GET", f"containers/{CONTAINER}/files/{CONTAINER_FILE}/content").content == b"Bread.\n"
    results = call(server, "POST", f"vector_stores/{STORE}/search", json={"query": "When do foxes hunt?"}).json()["data"]
    assert [result["file_id"] for result in results] == [FILE]


def test_an_old_response_is_continued_and_the_running_one_ends(server: Server) -> None:
    assert create(server, previous_response_id=OLD[0])["status"] == "completed"
    assert wait_ended(server, RUNNING)["status"] == "completed"


def pages() -> Iterator[tuple[str, str]]:
    """Yield name and path of every page that can be opened for an old object."""
    for name, route in _routes(get_resolver("responses_app.web.urls").url_patterns):
        if not OTHER_PAGES.search(name):
            yield name, re.sub(r"<(?:\w+:)?(\w+)>", partial(_value, name), route)


def _value(name: str, match: re.Match[str]) -> str:
    """Return the value of a parameter in the path of the page `name`."""
    if match[1] == "uid":
        objects = {"container": CONTAINER, "vector-store": STORE, "file-": FILE}
        return next((uid for prefix, uid in objects.items() if name.startswith(prefix)), OLD[0])
    values: dict[str, str] = {
        "pk": "1",
        "place": "0",
        "item": ITEM,
        "file": FILE if name.startswith("vector-store") else CONTAINER_FILE,
    }
    return values[match[1]]


def _routes(patterns: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern) and not str(pattern.pattern).startswith("^"):
            yield str(pattern.name), prefix + str(pattern.pattern)


def test_every_page_opens_the_old_rows(server: Server, visitor: httpx2.Client) -> None:
    answers = {f"{name}: {path}": visitor.get(f"/{path}").status_code for name, path in pages()}
    refused = {page: status for page, status in answers.items() if status not in (200, 405)}
    assert refused == {}
    assert sum(status == 200 for status in answers.values()) > 25
    for form in ("json", "jsonl", "sse"):
        assert visitor.get(f"/responses/{OLD[0]}.{form}").status_code == 200
    for model in ("response", "item", "conversation", "apikey"):
        assert visitor.get(f"/admin/responses_app/{model}/").status_code == 200
