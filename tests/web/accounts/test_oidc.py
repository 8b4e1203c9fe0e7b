"""Sign-in by OpenID Connect at a real provider: django-oauth-toolkit in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import httpx2
import psycopg
import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import TestCase, override_settings

from responses_app.installation.database_url import superuser_url
from responses_app.models import Role
from responses_app.web.oidc import adapter, people, reasons, setting
from tests.support import plain_http
from tests.support.oidc.process import Colleague, Provider
from tests.support.server.serve_command import Server
from tests.support.web.operator import sign_in_link

Arrival = Callable[[str], Colleague]
ROLES = {
    "research": {"lab": "member"},
    "leads": {"lab": "admin"},
    "readers": {"lab": "viewer", "archive": "viewer"},
}


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"))
    yield provider
    provider.end()


@pytest.fixture(scope="module")
def server(provider: Provider, tape: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    environ = {
        **provider.environ,
        "RESPONSES_OIDC_NAME": "Example ID",
        "RESPONSES_OIDC_ROLES": json.dumps(ROLES),
        "RESPONSES_OIDC_SUPERUSER_GROUPS": "admins",
        "RESPONSES_LOCAL_SIGN_IN": "0",
    }
    folder: Path = tmp_path_factory.mktemp("server") / "data"
    with Server(folder, "--engine", tape, before=("env", *(f"{name}={value}" for name, value in environ.items()))) as server:
        server.ready()
        provider.control(callback=f"{server.url}/sign-in/oidc/callback")
        yield server


@pytest.fixture
def browsers() -> Iterator[ExitStack]:
    """Close the browsers at the end."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def colleague(server: Server, browsers: ExitStack) -> Arrival:
    """Return a function that gives a person a browser."""
    return lambda name: browsers.enter_context(Colleague(server.url, name))


def roles(server: Server, name: str) -> list[str]:
    """Return project and role of the memberships of an account."""
    query = """SELECT project, role FROM responses_app_membership AS membership
      JOIN auth_user ON auth_user.id = membership.user_id WHERE username = %s"""
    with psycopg.connect(superuser_url(server.folder)) as connection:
        return [f"{project}={Role(role).label}" for project, role in connection.execute(query, [name])]


def test_groups_give_roles_and_take_them_at_the_next_sign_in(server: Server, provider: Provider, colleague: Arrival) -> None:
    provider.set_groups("ada", ["research", "readers", "unknown"])
    ada = colleague("ada")
    page = ada.enter("/sign-in/oidc/start?next=/keys")
    assert (page.status_code, page.url.path) == (200, "/keys")
    assert "<option selected>lab</option>" in page.text or ">lab</option>" in page.text
    assert 'title="ada"' in page.text
    assert ada.get("/members?project=lab").status_code == 403
    assert sorted(roles(server, "ada")) == ["archive=viewer", "lab=member"]

    provider.set_groups("ada", ["leads"])
    assert ada.enter().status_code == 200
    assert ada.get("/members?project=lab").status_code == 200
    provider.set_groups("ada", [])
    ada.enter()
    assert ada.get("/members?project=lab").status_code == 403
    assert roles(server, "ada") == []
    assert ada.get("/chat").status_code == 403


def test_superusers_are_those_of_the_group(server: Server, provider: Provider, colleague: Arrival) -> None:
    root = colleague("root")
    provider.set_groups("root", ["admins"])
    root.enter()
    entries = root.get("/admin/responses_app/auditentry/?action=sign-in")
    assert entries.status_code == 200
    assert "account root" in entries.text
    provider.set_groups("root", [])
    root.enter()
    assert root.get("/admin/").status_code == 403


def test_an_account_belongs_to_one_subject_and_no_e_mail_address(
    server: Server, provider: Provider, colleague: Arrival
) -> None:
    # All people of the provider have the same address, and one name differs by its case alone.
    provider.set_groups("Eve", [])
    provider.set_groups("eve", [])
    first, second, operator = colleague("Eve"), colleague("eve"), colleague("operator")
    assert 'title="Eve"' in first.enter().text
    assert 'title="eve-2"' in second.enter().text
    assert 'title="operator-2"' in operator.enter().text
    assert 'title="Eve"' in colleague("Eve").enter().text


def test_the_request_has_state_nonce_and_pkce(server: Server, provider: Provider, colleague: Arrival) -> None:
    query = colleague("ada").start("/sign-in/oidc/start?scope=admin&auth_params=prompt%3Dnone&process=connect").params
    assert query["code_challenge_method"] == "S256"
    assert len(query["code_challenge"]) >= 43
    assert len(query["state"]) >= 16
    assert len(query["nonce"]) >= 16
    assert set(query["scope"].split()) == {"openid", "profile", "email"}
    assert "prompt" not in query
    assert query["redirect_uri"] == f"{server.url}/sign-in/oidc/callback"
    assert provider.url in str(colleague("ada").start())


def test_a_wrong_or_foreign_or_used_state_is_refused(server: Server, provider: Provider, colleague: Arrival) -> None:
    provider.set_groups("mallory", [])
    mallory, victim = colleague("mallory"), colleague("victim")
    login = mallory.browser.get(mallory.start())
    back = mallory.browser.post(login.url, data={"username": "mallory"}, follow_redirects=False)
    # The provider's page of consent is skipped: one more redirect leads back.
    back = mallory.browser.get(f"{provider.url}{back.headers['location']}", follow_redirects=False)
    callback = httpx2.URL(back.headers["location"])
    assert callback.path == "/sign-in/oidc/callback"
    victim.start()
    for address in (callback, callback.copy_set_param("state", "wrong"), callback.copy_remove_param("state")):
        answer = victim.browser.get(address)
        assert answer.status_code == 403
        assert adapter.INVALID in answer.text
        assert "Content-Security-Policy" in answer.headers
    assert "Sign in with Example ID" in victim.get("/responses").text
    # A code works once, also for the right browser.
    assert mallory.browser.get(callback).status_code == 200
    assert mallory.browser.get(callback).status_code == 403


def test_a_cancelled_sign_in_has_a_page(server: Server, colleague: Arrival) -> None:
    ada = colleague("ada")
    state = ada.start().params["state"]
    answer = ada.get(f"/sign-in/oidc/callback?error=access_denied&state={state}")
    assert answer.status_code == 403
    assert adapter.CANCELLED in answer.text
    # The page and the log name the request, so that an admin finds the reason.
    request_id = answer.headers["x-request-id"]
    assert request_id in answer.text
    assert f"responses.oidc: {request_id} sign-in by OpenID Connect failed: access_denied" in server.output


def test_a_wrong_secret_sends_the_person_to_the_administrator(server: Server, provider: Provider, colleague: Arrival) -> None:
    callback = f"{server.url}/sign-in/oidc/callback"
    provider.control(callback=callback, client_secret="another secret")
    try:
        answer = colleague("ada").enter()
    finally:
        provider.control(callback=callback)
    assert answer.status_code == 403
    assert adapter.MISCONFIGURED in answer.text
    assert "button main" not in answer.text
    assert f'Give the administrator the request ID <span class="mono">{answer.headers["x-request-id"]}' in answer.text
    assert reasons.CREDENTIALS in server.output


def test_an_invalid_scope_sends_the_person_to_the_administrator(server: Server, colleague: Arrival) -> None:
    ada = colleague("ada")
    state = ada.start().params["state"]
    answer = ada.get(f"/sign-in/oidc/callback?error=invalid_scope&error_description=No+groups&state={state}")
    assert adapter.MISCONFIGURED in answer.text
    assert f"failed: invalid_scope: No groups. {reasons.SCOPES}" in server.output


def test_an_error_of_the_provider_and_an_unknown_state_are_named(server: Server, colleague: Arrival) -> None:
    ada = colleague("ada")
    state = ada.start().params["state"]
    answer = ada.get(f"/sign-in/oidc/callback?error=temporarily_unavailable&state={state}")
    assert adapter.FAILED in answer.text
    assert f"failed: temporarily_unavailable. {reasons.FAILED}" in server.output
    assert adapter.INVALID in ada.get("/sign-in/oidc/callback?code=x&state=unknown").text
    assert f"failed: {reasons.NO_STATE}" in server.output


def test_no_password_is_accepted_and_the_operator_has_a_way_in(server: Server, colleague: Arrival) -> None:
    visitor = colleague("visitor")
    page = visitor.get("/admin/")
    assert page.url.path == "/sign-in"
    assert "Password" not in page.text
    assert 'href="/sign-in/oidc/start?next=/admin/"' in page.text
    cookie = visitor.browser.cookies.get(f"csrftoken-{server.port}") or "a" * 32
    headers = {"Cookie": f"csrftoken-{server.port}={cookie}", "Origin": server.url}
    form = {"username": "ada", "password": "x", "csrfmiddlewaretoken": cookie}
    answer = plain_http.post(f"{server.url}/sign-in", data=form, headers=headers, timeout=180)
    assert answer.status_code == 403
    assert "accepts no passwords" in answer.text
    assert visitor.browser.get(sign_in_link(server)).status_code == 200
    assert visitor.get("/admin/").status_code == 200


def test_pages_of_allauth_are_not_reachable(server: Server, colleague: Arrival) -> None:
    visitor = colleague("visitor")
    for path in ("/accounts/signup/", "/accounts/login/", "/accounts/email/", "/social/connections/", "/oidc/oidc/login/"):
        assert visitor.get(path).status_code == 404


@pytest.mark.slow
def test_a_provider_that_is_away_is_named(tape: str, tmp_path: Path, browsers: ExitStack) -> None:
    environ = {
        "RESPONSES_OIDC_ISSUER": "http://localhost:9/o",
        "RESPONSES_OIDC_CLIENT_ID": "c",
        "RESPONSES_OIDC_CLIENT_SECRET": "s",
    }
    with Server(
        tmp_path / "data", "--engine", tape, before=("env", *(f"{name}={value}" for name, value in environ.items()))
    ) as server:
        server.ready()
        visitor = browsers.enter_context(Colleague(server.url, "visitor"))
        assert "Password" in visitor.get("/sign-in").text
        answer = visitor.get("/sign-in/oidc/start")
        assert answer.status_code == 502
        assert adapter.AWAY in answer.text
        assert reasons.AWAY in server.output


class SettingsTest(TestCase):
    """Settings, and the claim with the groups."""

    def test_nothing_of_allauth_is_reachable_without_a_provider(self) -> None:
        for path in ("/sign-in/oidc/start", "/sign-in/oidc/callback", "/accounts/login/", "/accounts/signup/"):
            self.assertEqual(self.client.get(path).status_code, 404)

    def test_roles_have_the_numbers_of_the_model(self) -> None:
        self.assertEqual(setting.ROLES, {"viewer": Role.VIEWER, "member": Role.MEMBER, "admin": Role.ADMIN})
        self.assertEqual(setting.parse_roles('{"*": {"default": "viewer"}}'), {"*": {"default": 1}})

    def test_a_bad_value_is_refused_with_a_sentence(self) -> None:
        for value, sentence in (
            ("{", "not valid JSON"),
            ("/no/such/file", "a JSON object or the path"),
            ('{"g": "member"}', "g must be an object of projects and roles"),
            ('{"g": {"p": "owner"}}', "g.p must be one of viewer, member, admin"),
            ('{"g": {"": "member"}}', "1 to 100 characters"),
        ):
            with self.subTest(value), self.assertRaisesMessage(ImproperlyConfigured, sentence):
                setting.parse_roles(value)
        for values, sentence in (
            (("ftp://x", "c", "s"), "must be an address such as"),
            (("http://id.example.com", "c", "s"), "must begin with https://"),
            (("https://id.example.com/.well-known/openid-configuration", "c", "s"), "must be the issuer alone"),
            (("https://user:word@id.example.com", "c", "s"), "without a user name"),
            (("https://id.example.com?tenant=1", "c", "s"), "without a user name, a query"),
            (("https://id example.com", "c", "s"), "and white space"),
            (("https://id.example.com", "", "s"), "needs RESPONSES_OIDC_CLIENT_ID"),
            (("https://id.example.com", "c", ""), "needs RESPONSES_OIDC_CLIENT_SECRET"),
            (("", "c", ""), "RESPONSES_LOCAL_SIGN_IN=0 needs RESPONSES_OIDC_ISSUER"),
        ):
            with self.subTest(values), self.assertRaisesMessage(ImproperlyConfigured, sentence):
                setting.check_provider(*values, {"RESPONSES_LOCAL_SIGN_IN=0": True})

    def test_an_empty_name_or_claim_of_a_provider_is_refused(self) -> None:
        oidc = replace(settings.RESPONSES_OIDC, issuer="https://id.example.com")
        for value in ("", " "):
            with self.subTest(value), self.assertRaisesMessage(ImproperlyConfigured, "RESPONSES_OIDC_NAME is empty"):
                replace(oidc, name=value)
            with self.subTest(value), self.assertRaisesMessage(ImproperlyConfigured, "RESPONSES_OIDC_GROUPS_CLAIM is empty"):
                replace(oidc, groups_claim=value)
        replace(oidc, issuer="", name="", groups_claim="")

    def test_groups_are_read_from_the_claim_of_the_settings(self) -> None:
        nested = {"realm_access": {"roles": ["a", 5, "b"]}, "https://x.y/groups": ["c"], "one": "d"}
        for path, groups in (
            ("realm_access.roles", {"a", "b"}),
            ("https://x.y/groups", {"c"}),
            ("one", {"d"}),
            ("none.at.all", set()),
            ("realm_access", set()),
        ):
            with self.subTest(path), override_settings(RESPONSES_OIDC=SimpleNamespace(groups_claim=path)):
                self.assertEqual(people.groups_of(nested), groups)
