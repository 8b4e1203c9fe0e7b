"""Upgrade from earlier versions: a database and files of each are migrated, and every route and page opens the old rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from responses_app.installation.data_dir import ROOT
from tests.support import plain_http
from tests.support.server.requests import call, create, replay, wait_ended
from tests.support.server.serve_command import EmptyServer, Server
from tests.support.upgrade.client import signed_in
from tests.support.upgrade.servers import restore_data
from tests.support.upgrade.versions import API_KEY, VERSIONS, Version, write_tape
from tests.support.web.operator import sign_in_link

# Pages that end a session, wait for events or take the POST of a form, and pages without a stored object of an old version.
OTHER_PAGES = re.compile(
    r"sign-out|sign-in|saved-view|mcp-server-test|live|chat-thread$|response-image|response-item-text|rerun-column|rerun-context"
    r"|webhook-resend"
)


class OldData:
    """Bodies that a version has answered, by path, and ids in these."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self.bodies: dict[str, Any] = json.loads((version.folder / "bodies.json").read_text())
        self.texts = {name: self.bodies.pop(name) for name, body in [*self.bodies.items()] if isinstance(body, str)}
        # Containers expire after a time without use.
        for container in self.bodies["containers"]["data"]:
            del container["status"]
        self.responses = [path.removeprefix("responses/") for path in self.bodies if re.fullmatch(r"responses/\w+", path)]
        self.container = self._uid(r"containers/(\w+)/files")
        self.container_file = self.bodies[f"containers/{self.container}/files"]["data"][0]["id"]
        item = self.bodies[f"responses/{self.responses[0]}"]["output"][0]["id"]
        self.file, self.store = self._uid(r"files/([\w-]+)"), self._uid(r"vector_stores/(\w+)/files")
        self.values: dict[str, str] = {
            "pk": "1",
            "place": "0",
            "item": item,
            "token": self.texts.get("shared", "").removeprefix("shared/"),
        }
        # Version 0.1.0 has no webhooks.
        self.webhook = self._uid(r"webhook_endpoints/(\w+)") if "webhook_endpoints" in self.bodies else ""

    def _uid(self, pattern: str) -> str:
        (uid,) = (match[1] for path in self.bodies if (match := re.fullmatch(pattern, path)))
        return uid

    def pages(self) -> Iterator[tuple[str, str]]:
        """Yield name and path of every page that can be opened for an old object."""
        for name, route in _routes(get_resolver("responses_app.web.urls").url_patterns):
            if not OTHER_PAGES.search(name):
                path = re.sub(r"<(?:\w+:)?(\w+)>", partial(self._value, name), route)
                if not path.endswith("/") and "//" not in path:
                    yield name, path

    def _value(self, name: str, match: re.Match[str]) -> str:
        """Return the value of a parameter in the path of the page `name`; empty for a page without an old object."""
        if match[1] == "uid":
            objects = {"container": self.container, "vector-store": self.store, "file-": self.file, "webhook": self.webhook}
            return next((uid for prefix, uid in objects.items() if name.startswith(prefix)), self.responses[0])
        if match[1] == "file":
            return self.file if name.startswith("vector-store") else self.container_file
        return self.values[match[1]]


@pytest.fixture(scope="module", params=VERSIONS, ids=lambda version: version.name)
def old(request: pytest.FixtureRequest) -> OldData:
    """Read the data of each version."""
    return OldData(request.param)


@pytest.fixture(scope="module")
def server(old: OldData, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of this commit, started on the old database."""
    folder = tmp_path_factory.mktemp("upgrade")
    data = folder / "data"
    restore_data(old.version, data)
    # Expired containers stay, however old the data is.
    environ = {"RESPONSES_API_KEY": API_KEY, "RESPONSES_KEEP_CONTAINERS": "off"}
    with EmptyServer(data, "--engine", write_tape(folder), root=ROOT, before=(), **environ) as server:
        yield server.ready()


@pytest.fixture(scope="module")
def visitor(server: Server) -> Iterator[httpx2.Client]:
    """A browser of the operator, who is signed in."""
    with signed_in(server.url, sign_in_link(server)) as client:
        yield client


def assert_contains(new: Any, old: Any, path: str) -> None:
    """Check that a body has all fields and values of an earlier body; fields may have been added."""
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


def test_objects_of_the_old_version_are_the_same(server: Server, old: OldData) -> None:
    for path, body in old.bodies.items():
        answer = call(server, "GET", path)
        assert answer.status_code == 200, f"{path}: {answer.text}"
        assert_contains(answer.json(), body, path)


def test_logs_of_old_responses_are_replayed(server: Server, old: OldData) -> None:
    for uid in old.responses:
        events = replay(server, uid)
        assert [event["sequence_number"] for event in events] == list(range(len(events)))
        assert_contains(events[-1]["response"], old.bodies[f"responses/{uid}"], uid)


def test_bytes_of_old_files_are_read_and_searched(server: Server, old: OldData) -> None:
    assert call(server, "GET", f"files/{old.file}/content").content == b"Foxes hunt at night.\n"
    assert call(server, "GET", f"containers/{old.container}/files/{old.container_file}/content").content == b"Bread.\n"
    results = call(server, "POST", f"vector_stores/{old.store}/search", json={"query": "When do foxes hunt?"}).json()["data"]
    assert [result["file_id"] for result in results] == [old.file]


def test_an_old_key_opens_the_responses_of_its_project(server: Server, old: OldData) -> None:
    if "key" in old.texts:
        headers = {"Authorization": f"Bearer {old.texts['key']}"}
        for path, status in ((old.texts["of_key"], 200), (old.responses[0], 404)):
            assert plain_http.get(f"{server.url}/v1/responses/{path}", headers=headers).status_code == status


def test_an_old_response_is_continued_and_the_running_one_ends(server: Server, old: OldData) -> None:
    assert create(server, previous_response_id=old.responses[0])["status"] == "completed"
    assert wait_ended(server, old.texts["running"])["status"] == "completed"


def _routes(patterns: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, prefix + str(pattern.pattern))
        elif isinstance(pattern, URLPattern) and not str(pattern.pattern).startswith("^"):
            yield str(pattern.name), prefix + str(pattern.pattern)


def test_every_page_opens_the_old_rows(server: Server, visitor: httpx2.Client, old: OldData) -> None:
    answers = {f"{name}: {path}": visitor.get(f"/{path}").status_code for name, path in old.pages()}
    refused = {page: status for page, status in answers.items() if status not in (200, 405)}
    assert refused == {}
    assert sum(status == 200 for status in answers.values()) > 25
    for form in ("json", "jsonl", "sse"):
        assert visitor.get(f"/responses/{old.responses[0]}.{form}").status_code == 200
    for model in ("response", "item", "conversation", "apikey", "auditentry", "webhookdelivery"):
        assert visitor.get(f"/admin/responses_app/{model}/").status_code == 200
