"""Secrets of a request: encrypted for a response, readable after a rotation of SECRET_KEY, absent from texts of the request."""

from __future__ import annotations

from django.test import override_settings

from responses_app.runs.create_request import CreateRequest
from responses_app.runs.server_tools.request_secrets import decrypt_secrets, encrypt_secrets

SECRETS = {"docs": {"Authorization": "Bearer s3cret", "X-Key": "s3cret"}}


def encrypted(uid: str = "resp_1") -> bytes:
    data = encrypt_secrets(uid, SECRETS)
    assert data is not None
    return data


def test_secrets_are_decrypted_for_their_response() -> None:
    assert decrypt_secrets("resp_1", memoryview(encrypted())) == SECRETS


def test_encrypted_secrets_do_not_contain_the_secrets() -> None:
    assert b"s3cret" not in encrypted()
    assert b"docs" not in encrypted()


def test_secrets_are_not_decrypted_for_another_response() -> None:
    assert decrypt_secrets("resp_2", encrypted()) == {}


def test_request_without_secrets_stores_nothing() -> None:
    assert encrypt_secrets("resp_1", {}) is None
    assert decrypt_secrets("resp_1", None) == {}


def test_secrets_are_readable_while_the_old_key_is_a_fallback() -> None:
    with override_settings(SECRET_KEY="k" * 40):
        data = encrypted()
    with override_settings(SECRET_KEY="n" * 40, SECRET_KEY_FALLBACKS=["k" * 40]):
        assert decrypt_secrets("resp_1", data) == SECRETS
    with override_settings(SECRET_KEY="n" * 40, SECRET_KEY_FALLBACKS=[]):
        assert decrypt_secrets("resp_1", data) == {}


def test_request_as_text_has_no_secrets() -> None:
    create_request = CreateRequest(project="p", key=1, model="m", input=[], secrets=SECRETS)
    assert "s3cret" not in repr(create_request)
    assert "s3cret" not in create_request.dump()
    assert CreateRequest.load(create_request.dump(), []).secrets == {}
    assert CreateRequest.load(create_request.dump(), [], SECRETS).secrets == SECRETS
