"""Tests of responses_app/web/oidc/reasons.py: exceptions of PyJWT, requests and django-allauth."""

from __future__ import annotations

import pytest
from allauth.core.internal.deferred import LazyModule, jwt
from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from responses_app.web.oidc import adapter, reasons
from responses_app.web.oidc.provider import OtherIssuerError

# A dependency of django-allauth.
requests = LazyModule("requests")


def caused_by(cause: Exception) -> OAuth2Error:
    """Return the error of django-allauth for a token that PyJWT refuses."""
    error = OAuth2Error("Invalid id_token")
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "text", "remedy"),
    [
        (
            caused_by(jwt.ExpiredSignatureError("Signature has expired")),
            "Invalid id_token: Signature has expired",
            reasons.CLOCK,
        ),
        (caused_by(jwt.ImmatureSignatureError("not yet valid (iat)")), "not yet valid (iat)", reasons.CLOCK),
        (caused_by(jwt.InvalidIssuerError("Invalid issuer")), "Invalid issuer", reasons.ISSUER),
        (caused_by(jwt.InvalidAudienceError("Audience")), "Audience", reasons.AUDIENCE),
        (OAuth2Error('Error retrieving access token: {"error": "invalid_client"}'), "invalid_client", reasons.CREDENTIALS),
        (requests.HTTPError("404 Client Error"), "404 Client Error", reasons.ISSUER),
        (requests.JSONDecodeError("Expecting value", "", 0), "Expecting value", reasons.ISSUER),
        (requests.exceptions.SSLError("certificate verify failed"), "certificate verify failed", reasons.CERTIFICATE),
        (requests.ConnectionError("refused"), "refused", reasons.AWAY),
        (OtherIssuerError("The provider names the issuer 'x'"), "names the issuer", reasons.ISSUER),
    ],
)
def test_known_cause_has_a_remedy(error: Exception, text: str, remedy: str) -> None:
    reason = reasons.reason_of(error)
    assert text in reason
    assert reason.endswith(remedy)


def test_unknown_cause_has_its_text_alone() -> None:
    assert reasons.reason_of(OAuth2Error("Something else")) == "Something else"
    assert reasons.reason_of(KeyError()) == "KeyError"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OAuth2Error('Error retrieving access token: {"error": "invalid_client"}'), adapter.MISCONFIGURED),
        (caused_by(jwt.ImmatureSignatureError("not yet valid (iat)")), adapter.MISCONFIGURED),
        (requests.HTTPError("404 Client Error"), adapter.MISCONFIGURED),
        (requests.exceptions.SSLError("certificate verify failed"), adapter.MISCONFIGURED),
        (KeyError("token_endpoint"), adapter.MISCONFIGURED),
        (requests.ConnectionError("refused"), adapter.AWAY),
        (requests.Timeout("read timed out"), adapter.AWAY),
        (OAuth2Error('Error retrieving access token: {"error": "invalid_grant"}'), adapter.INVALID),
    ],
)
def test_person_signs_in_again_only_where_that_can_help(error: Exception, sentence: str) -> None:
    assert adapter.sentence_of(error) == sentence
