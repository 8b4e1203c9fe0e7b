"""Log texts of failed OpenID Connect sign-ins: the error, the cause and the remedy."""

from __future__ import annotations

from typing import Final

CLOCK: Final = "Compare the clocks of this host and of the provider"
CREDENTIALS: Final = "RESPONSES_OIDC_CLIENT_ID and RESPONSES_OIDC_CLIENT_SECRET must be those of this client at the provider"
AUDIENCE: Final = "RESPONSES_OIDC_CLIENT_ID must be the client for which the provider makes the token"
ISSUER: Final = (
    "RESPONSES_OIDC_ISSUER must be the issuer of the provider, below which it serves /.well-known/openid-configuration"
)
AWAY: Final = "The provider must be reachable from this host, also its certificate must be accepted"
# Errors of the standard (RFC 6749, section 5.2) in the text of django-allauth's errors.
_CODES: Final = ("invalid_client", "unauthorized_client")
# Remedies by the name of the class or a base of it: PyJWT and requests belong to django-allauth.
_REMEDIES: Final = {
    "ExpiredSignatureError": CLOCK,
    "ImmatureSignatureError": CLOCK,
    "InvalidIssuedAtError": CLOCK,
    "InvalidIssuerError": ISSUER,
    "InvalidAudienceError": AUDIENCE,
    "HTTPError": ISSUER,
    "JSONDecodeError": ISSUER,
    "RequestException": AWAY,
}
MAX_TEXT: Final = 300


def reason_of(error: BaseException) -> str:
    """Return the messages of the exception and its `__cause__`, with the text of `_REMEDIES` for its class."""
    cause = error.__cause__ or error
    texts = dict.fromkeys(str(one) or type(one).__name__ for one in (error, cause))
    text = ": ".join(texts)[:MAX_TEXT]
    remedy = next((_REMEDIES[kind.__name__] for kind in type(cause).__mro__ if kind.__name__ in _REMEDIES), "")
    if any(code in text for code in _CODES):
        remedy = CREDENTIALS
    return f"{text}. {remedy}" if remedy else text
