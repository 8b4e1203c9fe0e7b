"""Hooks of django-allauth: a sign-in of the provider becomes a session, an error becomes a page."""

from __future__ import annotations

import logging
import secrets
import time
from typing import Any, Final

from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.providers.base.constants import AuthError
from django.conf import settings
from django.contrib.auth import login
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from responses_app.observability.records import current_request
from responses_app.store import audit_log
from responses_app.store.db import release_connection
from responses_app.utils.user_model import User
from responses_app.web.accounts.sign_in import BACKEND
from responses_app.web.oidc import people, reasons
from responses_app.web.oidc.reasons import reason_of, remedy_of

CANCELLED: Final = "The sign-in was cancelled at the provider."
INVALID: Final = "The answer of the provider is not valid, or this sign-in took longer than ten minutes. Please sign in again."
AWAY: Final = "The sign-in provider cannot be reached. Please try again in a minute."
FAILED: Final = "The sign-in provider reports an error. Please try again in a minute."
MISCONFIGURED: Final = (
    "This server and the sign-in provider do not work together, and signing in again does not mend that. The administrator of "
    "this server has to look."
)
# What an answer of the provider raises that misses fields, is no JSON, or has a key of another kind.
MALFORMED: Final = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
MAX_ANSWER_BYTES: Final = 1024 * 1024
# Seconds for the body of an answer, which the time limit for single packets does not bound.
MAX_ANSWER_S: Final = 10.0
PIECE_BYTES: Final = 64
# Characters of a reason in the log: the text of the provider and a remedy.
MAX_REASON: Final = 500
INACTIVE: Final = "This account is not active. Ask an admin."

logger = logging.getLogger("responses.oidc")


class Adapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Adapter of django-allauth. No code of its sign-up, e-mail and connection pages is reached."""

    def get_requests_session(self) -> Any:
        """Return a session of `requests` that bounds the answers of the provider.

        The thread returns its database connection: a slow provider must not keep the connections of the process from all others.
        """
        release_connection()
        session = super().get_requests_session()
        session.stream = True
        session.hooks["response"].append(_read_body)
        return session

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        """Sign the person in. Raises ImmediateHttpResponse with the redirect or the page of an error."""
        claims = sociallogin.claims
        if not secrets.compare_digest(str(claims.get("nonce", "")), str(sociallogin.state.get("nonce"))):
            raise ImmediateHttpResponse(error_page(request, INVALID, "another nonce"))
        with transaction.atomic():
            user: User = sociallogin.user if sociallogin.is_existing else self._new_user(request, sociallogin)
            if not user.is_active:
                raise ImmediateHttpResponse(error_page(request, INACTIVE, "inactive account"))
            people.apply_groups(request, user, people.groups_of(claims))
        login(request, user, BACKEND)
        if settings.RESPONSES_OIDC.session_age is not None:
            request.session.set_expiry(timezone.now() + settings.RESPONSES_OIDC.session_age)
        raise ImmediateHttpResponse(redirect(sociallogin.state.get("next") or settings.LOGIN_REDIRECT_URL))

    def _new_user(self, request: HttpRequest, sociallogin: Any) -> User:
        user = people.new_account(sociallogin.claims)
        sociallogin.account.user = user
        sociallogin.account.save()
        audit_log.record(audit_log.actor_of(request, user), "account.create", f"account {user}: by the sign-in provider")
        return user

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Exception | None = None,
        extra_context: Any = None,
    ) -> None:
        """Raise ImmediateHttpResponse with the page of the error."""
        del provider, extra_context
        if exception is not None:
            raise ImmediateHttpResponse(error_page(request, sentence_of(exception), reason_of(exception)))
        code = request.GET.get("error", "")
        sentence = CANCELLED if error == AuthError.CANCELLED else _sentence_of_code(code)
        reason = reasons.reason_of_redirect(code, request.GET.get("error_description", ""))
        raise ImmediateHttpResponse(error_page(request, sentence, reason))


def _read_body(response: Any, **_options: object) -> None:
    """Read the body of an answer. Raises ValueError for a long one, and TimeoutError."""
    body, end_s = bytearray(), time.monotonic() + MAX_ANSWER_S
    with response:
        for piece in response.iter_content(PIECE_BYTES):
            body += piece
            if len(body) > MAX_ANSWER_BYTES:
                raise ValueError(f"The answer of the provider has more than {MAX_ANSWER_BYTES:,} bytes")
            if time.monotonic() > end_s:
                raise TimeoutError(f"The answer of the provider took more than {MAX_ANSWER_S:g} s")
    # As `Response.content` sets them.
    response._content, response._content_consumed = bytes(body), True


def sentence_of(error: Exception) -> str:
    """Return the sentence of the page for an exception of the exchange: to sign in again only where that can help."""
    remedy = remedy_of(error)
    if remedy == reasons.AWAY:
        return AWAY
    # Without a remedy, an OAuth2Error is a code that was used or is old. The others are fields that the provider leaves out.
    return MISCONFIGURED if remedy or isinstance(error, MALFORMED) else INVALID


def _sentence_of_code(code: str) -> str:
    if code in reasons.REFUSED_CLIENT:
        return MISCONFIGURED
    return FAILED if code in reasons.PROVIDER_ERRORS else INVALID


def error_page(request: HttpRequest, sentence: str, reason: str, status: int = 403) -> HttpResponse:
    """Render the page of an error, with the id of the request. The log gets the id and the reason, the audit log a failed sign-in."""
    record = current_request.get()
    request_id = record.request_id if record is not None else ""
    logger.warning("%s sign-in by OpenID Connect failed: %s", request_id, reason[:MAX_REASON])
    visitor = audit_log.Actor(audit_log.Kind.VISITOR, address=audit_log.address_of(request))
    audit_log.record_once(visitor, "sign-in", "sign-in provider", outcome=audit_log.Outcome.FAILURE)
    context = {"sentence": sentence, "request_id": request_id, "can_try_again": sentence != MISCONFIGURED}
    return render(request, "web/sign_in_error.html", context, status=status)
