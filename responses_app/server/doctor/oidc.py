"""Check of the OpenID Connect provider, with the HTTP client and the time limit of a sign-in, without the secret."""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from allauth.socialaccount.adapter import get_adapter
from django.conf import settings

from responses_app.server.doctor.findings import FAILED, OK, Check, CheckResults
from responses_app.web.oidc.reasons import reason_of
from responses_app.web.oidc.setting import METADATA_PATH

ADDRESSES: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
# A token is refused when it is made after the time of this host, and most are valid for a few minutes.
MAX_CLOCK_DIFFERENCE_S: Final = 60.0


def checks() -> list[tuple[str, Check]]:
    """Return the check of the provider; none without RESPONSES_OIDC_ISSUER."""
    return [("sign-in provider", check_provider)] if settings.RESPONSES_OIDC.issuer else []


def check_provider() -> CheckResults:
    """Check the metadata and the keys of the provider, and the difference of the clocks."""
    issuer = settings.RESPONSES_OIDC.issuer.rstrip("/")
    try:
        metadata, clock_difference_s = _fetch(f"{issuer}{METADATA_PATH}")
        problem = _metadata_problem(metadata, issuer) or _keys_problem(_fetch(metadata["jwks_uri"])[0])
    except (OSError, ValueError) as error:
        # `requests` raises subclasses of these.
        yield FAILED, f"No sign-in works: {reason_of(error)}."
        return
    if problem:
        yield FAILED, problem
    if abs(clock_difference_s) > MAX_CLOCK_DIFFERENCE_S:
        yield (
            FAILED,
            f"The clock of this host differs from the clock of {issuer} by {clock_difference_s:+.0f} s, so its tokens are "
            "refused as expired or not yet valid. Run NTP on this host.",
        )
    elif not problem:
        yield OK, f"{issuer} answers as this issuer, with the addresses and the keys that a sign-in needs."


def _fetch(url: str) -> tuple[Any, float]:
    """Return the JSON of an address, and the seconds by which the clock of this host is ahead, 0 without a date."""
    with get_adapter().get_requests_session() as session:
        answer = session.get(url)
    difference_s = _clock_difference_s(answer.headers)
    answer.raise_for_status()
    return answer.json(), difference_s


def _clock_difference_s(headers: Mapping[str, str]) -> float:
    try:
        # The answer of a cache has the time at which it was made, and its age.
        made_s = parsedate_to_datetime(headers["Date"]).timestamp() + float(headers.get("Age", 0))
    except (LookupError, ValueError):
        return 0.0
    return time.time() - made_s


def _metadata_problem(metadata: Any, issuer: str) -> str:
    if not isinstance(metadata, dict):
        return f"{issuer}{METADATA_PATH} is no JSON object. Correct RESPONSES_OIDC_ISSUER."
    named = str(metadata.get("issuer", ""))
    if named.rstrip("/") != issuer:
        return (
            f"The provider names the issuer {named!r}, and RESPONSES_OIDC_ISSUER is {issuer!r}. Set it to that of the provider."
        )
    missing = [name for name in ADDRESSES if not isinstance(metadata.get(name), str)]
    if missing:
        return f"The metadata of {issuer} has no {' and no '.join(missing)}. Switch the code flow of the provider on."
    return ""


def _keys_problem(keys: Any) -> str:
    if isinstance(keys, dict) and keys.get("keys"):
        return ""
    return "The jwks_uri of the provider has no keys, so no ID token can be verified. Give the client an asymmetric key there."
