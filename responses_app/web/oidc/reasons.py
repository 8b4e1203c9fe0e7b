"""Log texts of failed OpenID Connect sign-ins: the error, the cause and the remedy."""

from __future__ import annotations

from typing import Final

CLOCK: Final = "Compare the clocks of this host and of the provider"
CREDENTIALS: Final = "RESPONSES_OIDC_CLIENT_ID and RESPONSES_OIDC_CLIENT_SECRET must be those of this client at the provider"
AUDIENCE: Final = "RESPONSES_OIDC_CLIENT_ID must be the client for which the provider makes the token"
ISSUER: Final = (
    "RESPONSES_OIDC_ISSUER must be the issuer of the provider, below which it serves /.well-known/openid-configuration"
)
AWAY: Final = "The provider must be reachable from this host"
CERTIFICATE: Final = (
    "This host must accept the certificate of the provider: REQUESTS_CA_BUNDLE names a file of other authorities"
)
FLOW: Final = "The provider must allow this client the authorization code flow and the address for the way back"
SCOPES: Final = "RESPONSES_OIDC_SCOPES must be scopes that the provider allows this client"
FAILED: Final = "The log of the provider has the cause"
NO_STATE: Final = (
    "This browser has begun no sign-in with this state. The sign-in began at another host name than that of the address for the "
    "way back, or more than ten minutes ago, or the browser keeps no cookie, as with RESPONSES_TLS and an http address"
)
# Codes of the provider's redirect (RFC 6749, section 4.1.2.1) that come from the settings of the client.
REFUSED_CLIENT: Final = {
    "invalid_request": FLOW,
    "unauthorized_client": FLOW,
    "unsupported_response_type": FLOW,
    "invalid_scope": SCOPES,
}
# Codes that come from the provider.
PROVIDER_ERRORS: Final = {"server_error": FAILED, "temporarily_unavailable": FAILED}
# Errors of the standard (RFC 6749, section 5.2) in the text of django-allauth's errors.
_CODES: Final = ("invalid_client", "unauthorized_client")
# Remedies by the name of the class or a base of it: PyJWT and requests, whose errors are OSErrors, belong to django-allauth.
_REMEDIES: Final = {
    "ExpiredSignatureError": CLOCK,
    "ImmatureSignatureError": CLOCK,
    "InvalidIssuedAtError": CLOCK,
    "InvalidIssuerError": ISSUER,
    "OtherIssuerError": ISSUER,
    "InvalidAudienceError": AUDIENCE,
    "OtherClientError": AUDIENCE,
    "HTTPError": ISSUER,
    "JSONDecodeError": ISSUER,
    "SSLError": CERTIFICATE,
    "OSError": AWAY,
}
MAX_TEXT: Final = 300


def reason_of(error: BaseException) -> str:
    """Return the messages of an exception and of the `__cause__`, with the text of `_REMEDIES` for the class."""
    text, remedy = _text_of(error)[:MAX_TEXT], remedy_of(error)
    return f"{text}. {remedy}" if remedy else text


def reason_of_redirect(code: str, description: str) -> str:
    """Return the code and the description of the provider's redirect with the remedy. Without a code the state is unknown."""
    if not code:
        return NO_STATE
    remedy = REFUSED_CLIENT.get(code) or PROVIDER_ERRORS.get(code)
    text = ": ".join(filter(None, (code, description.strip())))[:MAX_TEXT].rstrip(".")
    return f"{text}. {remedy}" if remedy else text


def remedy_of(error: BaseException) -> str:
    """Return the text of `_REMEDIES` for an exception, empty for an unknown class."""
    if any(code in _text_of(error) for code in _CODES):
        return CREDENTIALS
    return next((_REMEDIES[kind.__name__] for kind in type(_cause_of(error)).__mro__ if kind.__name__ in _REMEDIES), "")


def _cause_of(error: BaseException) -> BaseException:
    return error.__cause__ or error


def _text_of(error: BaseException) -> str:
    return ": ".join(dict.fromkeys(str(one) or type(one).__name__ for one in (error, _cause_of(error))))
