"""Answers of a provider that are slow, long or deep, ID tokens without required claims, and names of new accounts."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from django.contrib.auth.models import User
from django.db import connection

from responses_app.web.oidc import adapter, people
from responses_app.web.oidc.adapter import MAX_ANSWER_BYTES, Adapter
from responses_app.web.oidc.provider import OtherClientError, check_claims
from tests.support.http_server import SilentHandler, http_server, serving

CLAIMS: dict[str, Any] = {"exp": 2, "iat": 1}


class LongAnswers(SilentHandler):
    """Handler that answers `/N` with a JSON string of N characters."""

    def do_GET(self) -> None:
        body = b'"' + b"x" * int(self.path[1:]) + b'"'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    handler: type[BaseHTTPRequestHandler] = LongAnswers
    with serving(http_server(handler)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.django_db(transaction=True)
def test_sign_in_holds_no_database_connection_while_the_provider_is_asked() -> None:
    assert not User.objects.exists()
    assert connection.connection is not None
    Adapter().get_requests_session()
    assert connection.connection is None


@pytest.mark.django_db
def test_answer_is_read_up_to_the_limit(url: str) -> None:
    with Adapter().get_requests_session() as session:
        assert session.get(f"{url}/500").json() == "x" * 500
        with pytest.raises(ValueError, match="more than 1,048,576 bytes"):
            session.get(f"{url}/{MAX_ANSWER_BYTES}")


@pytest.mark.django_db
def test_answer_that_takes_too_long_is_cut(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "MAX_ANSWER_S", -1.0)
    with Adapter().get_requests_session() as session, pytest.raises(TimeoutError) as caught:
        session.get(f"{url}/500")
    assert adapter.sentence_of(caught.value) == adapter.AWAY


def test_deep_answer_is_an_answer_of_another_kind() -> None:
    assert adapter.sentence_of(RecursionError()) == adapter.MISCONFIGURED
    assert issubclass(RecursionError, adapter.MALFORMED)


@pytest.mark.parametrize("name", CLAIMS)
def test_token_without_a_required_time_is_refused(name: str) -> None:
    with pytest.raises(OAuth2Error, match=f"no claim '{name}'"):
        check_claims({key: value for key, value in CLAIMS.items() if key != name}, "client")


def test_token_of_another_client_is_refused() -> None:
    check_claims(CLAIMS, "client")
    check_claims({**CLAIMS, "azp": "client"}, "client")
    with pytest.raises(OtherClientError, match="issued to the client 'other'"):
        check_claims({**CLAIMS, "aud": ["client", "other"], "azp": "other"}, "client")


@pytest.mark.django_db
def test_name_in_other_forms_of_the_same_characters_gets_a_number() -> None:
    User.objects.create_user("alice")
    assert people.new_account({"name": "ａlice"}).username == "alice-2"
    assert people.new_account({"name": "ﷺ" * 140}).username
