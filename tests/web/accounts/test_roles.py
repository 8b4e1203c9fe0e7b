"""Roles: every page is fetched as every person, and the smallest role that is let in is that of the table in the docs."""

from __future__ import annotations

import html
import re
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, User
from django.db import transaction
from django.test import Client, override_settings
from django.urls import URLPattern, URLResolver, resolve, reverse

from responses_app.models import (
    ApiKey,
    ChatThread,
    Container,
    Direction,
    File,
    FileSource,
    Membership,
    Response,
    Role,
    SavedView,
    WebhookDelivery,
)
from responses_app.store.files import container_files, files, storage
from responses_app.store.files.pending import part_path
from responses_app.web import urls
from responses_app.web.accounts import sign_in
from responses_app.web.chat import shared_threads
from responses_app.web.roles import NEEDED
from responses_app.webhooks.endpoints import new_endpoint
from tests.support.doc_tables import table_rows
from tests.support.store.file_storage import file_storage_settings
from tests.support.store.vector_stores import add_file, make_store
from tests.support.web.page_case import WebCase, collect, item, made

NOW = datetime.now(UTC)
# From the smallest rights to the largest, as the docs name them.
PERSONS: Final = ("anyone", "signed in", "viewer", "member", "project admin", "superuser")
ROLES: Final = {"viewer": Role.VIEWER, "member": Role.MEMBER, "project admin": Role.ADMIN}
# PNG of one pixel.
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
NOBODY: Final = "–"
# Links to pages and forms that are not sent by a script.
INTERNAL_LINK: Final = re.compile(r'<a [^>]*?href="((?:/(?!static/|admin/)|\?)[^"#]*)')
FORM: Final = re.compile(r'<form (?=[^>]*method="post")(?:[^>]*?action="([^"]*)")?')
# Query of pages without an object in the path.
QUERIES: Final = {
    "chat": "project=p",
    "chat-threads": "project=p",
    "chat-secret": "project=p",
    "members": "project=p",
    "compare": "a=resp_1",
    "response-rerun-column": "run=resp_1",
    "response-item-text": "part=0",
    "response-rerun-context": "until=msg_in_resp_1",
}
FORMS: Final[Mapping[str, Mapping[str, str]]] = {
    "keys": {"name": "new", "project": "p"},
    "responses-selection": {"action": "export", "uid": "resp_1"},
    "members": {"username": "nobody", "role": "1"},
    "member": {"role": "1"},
    "sign-in": {"username": "nobody", "password": "wrong"},
}


def pages(patterns: list[Any] = urls.urlpatterns, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield name and path of each page."""
    for one in patterns:
        if isinstance(one, URLResolver):
            yield from pages(one.url_patterns, prefix + str(one.pattern))
        else:
            assert isinstance(one, URLPattern)
            yield str(one.name), f"/{prefix}{one.pattern}"


class RolesTest(WebCase):
    """A project `p` with one object of each kind."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.enterContext(override_settings(**file_storage_settings(self.folder), RESPONSES_SANDBOX_URL=""))
        self.users: dict[str, User | AnonymousUser] = {"anyone": AnonymousUser(), "superuser": self.operator}
        self.sessions: dict[str, str] = {}
        for person in PERSONS[1:-1]:
            user = User.objects.create_user(person.replace(" ", "-"))
            self.users[person] = user
            if person in ROLES:
                Membership.objects.create(user=user, project="p", role=ROLES[person])

    def objects(self) -> dict[str, dict[str, Any]]:
        """Store an object of each kind. Return the arguments of the pages by the beginning of their names."""
        row = made()
        picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}"}
        item(row, "msg_picture", "message", Direction.INPUT, role="user", content=[picture])
        item(row, "fco_long", "function_call_output", Direction.INPUT, call_id="call_1", output="a long text\n" * 5000)
        stored = container_files.new_name()
        part_path(stored).write_bytes(b"Oslo")
        storage.save(part_path(stored), stored)
        file = File(uid="file-1", project="p", filename="a", purpose="user_data", bytes=4, created_at=NOW, storage_name=stored)
        files.create(file)
        container = Container.objects.create(uid="cntr_1", project="p", name="work", created_at=NOW, last_active_at=NOW)
        name = container_files.new_name()
        part_path(name).write_bytes(b"Oslo")
        container_files.insert(container_files.new_row(container, "cfile_1", "/mnt/data/a", FileSource.ASSISTANT, 4, name))
        store = make_store("p")
        key, _ = ApiKey.make("own", "p")
        member = Membership.objects.create(user=User.objects.create_user("other"), project="p")
        thread = ChatThread.objects.create(
            user=self.operator, thread=row.thread, project="p", share_key="k", shared_uid=row.uid
        )
        endpoint, _ = new_endpoint("p", name="w", url="https://example.com/w", event_types=["response.failed"])
        endpoint.save()
        times = {"created_at": NOW, "due_at": NOW}
        delivery = WebhookDelivery.objects.create(
            uid="wh_1", event_uid="evt_1", response_uid="resp_1", endpoint=endpoint, **times
        )
        response = {"uid": row.uid, "place": 0, "item": "msg_picture", "form": "jsonl"}
        return {
            "key": {"pk": key.pk},
            "member": {"pk": member.pk},
            "file": {"uid": file.uid},
            "container": {"uid": container.uid, "file": "cfile_1"},
            "vector-store": {"uid": store.uid, "file": add_file(store).file.uid},
            "saved-view": {"pk": SavedView.objects.create(user=self.operator, name="v", query="q=1").pk},
            "mcp-server": {"label": "docs"},
            "shared-thread": {"token": shared_threads.path_of(thread).rpartition("/")[2]},
            "webhook": {"uid": endpoint.uid, "delivery": delivery.pk},
            "sign-in-link": {"token": sign_in.link(self.operator).rpartition("/")[2]},
            "response-item-text": {**response, "item": "fco_long"},
            "response": response,
            "chat-export": {**response, "form": "md"},
            "chat": response,
        }

    def status(self, name: str, path: str, method: str, person: str) -> int:
        """Return the status of a page for a person. Everything is undone."""
        with transaction.atomic():
            values = next((one for start, one in self.arguments.items() if name.startswith(start)), {})
            known = {field: value for field, value in values.items() if f":{field}>" in path or f"<{field}>" in path}
            user, client = self.users[person], Client()
            if isinstance(user, User):
                client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[person]
                ApiKey.objects.update(owner=user)
            url = f"{reverse(name, kwargs=known)}?{QUERIES.get(name, '')}"
            answer = client.get(url) if method == "GET" else client.post(url, FORMS.get(name, {}))
            if name in {"file-content", "container-file"} and answer.status_code == 200:
                assert collect(answer) == b"Oslo"
            if answer.status_code == 200:
                # A cache would show the page to the next person.
                self.assertRegex(answer.get("Cache-Control", ""), "private|no-store|no-cache")
            transaction.set_rollback(True)
        to_sign_in = answer.status_code == 302 and answer["Location"].startswith("/sign-in?next=")
        return 401 if to_sign_in else int(answer.status_code)

    def smallest(self, name: str, path: str, method: str) -> str:
        """Return the smallest person who is let in. Every larger one must be let in too."""
        largest = self.status(name, path, method, PERSONS[-1])
        if largest == 405:
            return NOBODY
        statuses = [*(self.status(name, path, method, person) for person in PERSONS[:-1]), largest]
        # Without a model, the page `connect` is not found by all.
        refused = {401, 403} if name == "connect" else {401, 403, 404}
        let_in = [status not in refused for status in statuses]
        assert any(let_in), (name, method, statuses)
        first = let_in.index(True)
        self.assertTrue(all(let_in[first:]), (name, method, statuses))
        return PERSONS[first]

    @pytest.mark.slow
    def test_every_page_lets_in_the_persons_of_the_table(self) -> None:
        documented = table_rows("operations/sign-in.md", "### Pages and roles")
        self.enterContext(override_settings(RESPONSES_MCP_SERVERS={"docs": {"command": ["false"]}}))
        self.arguments = self.objects()
        for person in PERSONS[1:]:
            self.sessions[person] = self.signed_in(person).cookies[settings.SESSION_COOKIE_NAME].value
        shown = {}
        for name, path in pages():
            with self.subTest(name):
                cells = [self.smallest(name, path, method) for method in ("GET", "POST")]
                shown[name] = cells
                self.assertEqual(documented.get(name, [None])[:2], cells, f"| `{name}` | {' | '.join(cells)} |")
        self.assertEqual(set(documented), set(shown))

    @pytest.mark.slow
    def test_pages_show_a_viewer_no_link_and_no_form_that_is_refused(self) -> None:
        self.objects()
        seen: dict[str, str] = {}
        waiting = [reverse("home")]
        while waiting:
            path = waiting.pop()
            name = str(resolve(urlsplit(path).path).url_name)
            if name in seen:
                continue
            seen[name] = path
            answer = self.signed_in("viewer").get(path)
            self.assertNotIn(answer.status_code, (403, 404), path)
            content = collect(answer) if answer.streaming else answer.content
            # A link to a picture leads to bytes.
            text = content.decode(errors="replace")
            if answer["Content-Type"].startswith("text/html"):
                waiting += [urljoin(path, html.unescape(link)) for link in INTERNAL_LINK.findall(text)]
                for action in map(html.unescape, FORM.findall(text)):
                    with transaction.atomic():
                        posted = self.signed_in("viewer").post(urljoin(path, action or path))
                        transaction.set_rollback(True)
                    self.assertNotEqual(posted.status_code, 403, (path, action))
        self.assertLessEqual({"files", "containers", "vector-stores", "vector-store", "response", "keys", "models"}, set(seen))

    def signed_in(self, person: str) -> Client:
        """Return a client that is signed in as the person."""
        client, user = Client(), self.users[person]
        assert isinstance(user, User)
        client.force_login(user)
        return client

    def test_viewer_can_only_compare_and_export_the_checked_responses(self) -> None:
        made()
        for person, actions in (("viewer", ["compare", "export"]), ("member", ["compare", "export", "cancel", "delete"])):
            shown = self.signed_in(person).get("/responses").content.decode()
            self.assertEqual(re.findall(r'name="action" value="(\w+)"', shown), actions)

    def test_a_viewer_reads_a_comparison_without_the_request_to_run(self) -> None:
        made()
        made("resp_2")
        parts = ['class="pane editors"', "data-add", "data-continue", "<select", "<template"]
        for person, shown in (("viewer", []), ("member", parts)):
            page = self.signed_in(person).get("/responses/resp_1/rerun?column=resp_2").content.decode()
            self.assertIn("Differences from response 1", page)
            self.assertEqual([part for part in parts if part in page], shown)

    def test_table_of_roles_names_pages_alone(self) -> None:
        self.assertLessEqual(set(NEEDED), {name for name, _ in pages()})


class OwnKeysTest(WebCase):
    """Keys of members and of admins of a project."""

    def setUp(self) -> None:
        super().setUp()
        self.ada, self.eve = User.objects.create_user("ada"), User.objects.create_user("eve")
        for user in (self.ada, self.eve):
            Membership.objects.create(user=user, project="p")
        self.key, _ = ApiKey.make("of ada", "p", owner=self.ada, requests_per_minute=5)

    def test_a_member_sees_and_changes_the_own_keys_but_no_limits(self) -> None:
        self.client.force_login(self.eve)
        self.assertNotIn("of ada", self.page("/keys"))
        self.assertEqual(self.client.post(f"/keys/{self.key.pk}/revoke").status_code, 404)
        self.client.force_login(self.ada)
        self.client.post(f"/keys/{self.key.pk}", {"name": "renamed", "requests_per_minute": "9999"})
        self.key.refresh_from_db()
        self.assertEqual((self.key.name, self.key.requests_per_minute), ("renamed", 5))

    def test_an_admin_of_the_project_changes_all_keys_and_their_limits(self) -> None:
        Membership.objects.filter(user=self.eve).update(role=Role.ADMIN)
        self.client.force_login(self.eve)
        self.assertIn("by ada", self.page("/keys"))
        self.client.post(f"/keys/{self.key.pk}", {"name": "of ada", "requests_per_minute": "7"})
        self.key.refresh_from_db()
        self.assertEqual(self.key.requests_per_minute, 7)

    def test_a_viewer_deletes_no_selected_responses(self) -> None:
        made()
        Membership.objects.update(role=Role.VIEWER)
        self.client.force_login(self.ada)
        form = {"action": "delete", "confirmed": "1", "uid": "resp_1"}
        self.assertEqual(self.client.post("/responses/selection", form).status_code, 403)
        self.assertTrue(Response.objects.filter(uid="resp_1").exists())
        page = self.page("/responses/resp_1")
        self.assertNotIn("Edit and rerun", page)
        self.assertNotIn("/resp_1/delete", page)


class MembersTest(WebCase):
    """Members page."""

    def setUp(self) -> None:
        super().setUp()
        self.ada, self.eve = User.objects.create_user("ada"), User.objects.create_user("eve")
        Membership.objects.create(user=self.ada, project="p", role=Role.ADMIN)
        self.client.force_login(self.ada)

    def roles(self) -> dict[str, int]:
        """Return the roles of the project by name."""
        return dict(Membership.objects.filter(project="p").values_list("user__username", "role"))

    def test_members_without_a_project_are_those_of_the_first(self) -> None:
        self.assertIn("Members of p", self.page("/members"))
        self.assertIn('href="/members"', self.page("/keys"))
        self.client.force_login(User.objects.create_superuser("carl"))
        page = self.page("/members")
        self.assertIn("Members of default", page)
        self.assertIn('href="?project=p"', page)
        self.client.force_login(self.eve)
        self.assertEqual(self.client.get("/members").status_code, 403)
        Membership.objects.create(user=self.eve, project="p", role=Role.MEMBER)
        self.assertNotIn('href="/members"', self.page("/keys"))

    def test_an_admin_adds_changes_and_removes_members(self) -> None:
        self.client.post("/members?project=p", {"username": "eve", "role": "1"})
        self.assertEqual(self.roles(), {"ada": 3, "eve": 1})
        page = self.page("/members?project=p")
        self.assertIn("New role of eve", page)
        membership = Membership.objects.get(user=self.eve)
        self.client.post(f"/members/{membership.pk}", {"role": "2"})
        self.assertEqual(self.roles(), {"ada": 3, "eve": 2})
        self.client.post(f"/members/{membership.pk}", {"action": "remove"})
        self.assertEqual(self.roles(), {"ada": 3})
        self.assertIn(
            "No active account has this name.", self.client.post("/members?project=p", {"username": "no"}).content.decode()
        )

    def test_roles_of_the_provider_are_not_changed_here(self) -> None:
        membership = Membership.objects.create(user=self.eve, project="p", by_provider=True)
        for form in ({"role": "3"}, {"action": "remove"}):
            self.client.post(f"/members/{membership.pk}", form)
        self.assertEqual(self.roles(), {"ada": 3, "eve": 2})
        self.assertIn("By the groups of the sign-in provider", self.page("/members?project=p"))

    def test_other_projects_are_refused(self) -> None:
        other = Membership.objects.create(user=self.eve, project="q")
        # As for a number that no membership has.
        for pk in (other.pk, other.pk + 1):
            self.assertEqual(self.client.post(f"/members/{pk}", {"role": "3"}).status_code, 404)
        self.assertEqual(self.client.post("/members?project=q", {"username": "ada", "role": "3"}).status_code, 403)
