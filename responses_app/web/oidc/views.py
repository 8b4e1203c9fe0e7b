"""Views of the sign-in by OpenID Connect: the redirect to the provider, and the way back."""

from __future__ import annotations

from typing import Any

from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from responses_app.web.oidc.adapter import MALFORMED, error_page, sentence_of
from responses_app.web.oidc.provider import OidcAdapter, OidcProvider
from responses_app.web.oidc.reasons import reason_of


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect GET /sign-in/oidc/start to the provider."""
    return _guarded(OAuth2LoginView, request)


@never_cache
@require_GET
def callback(request: HttpRequest) -> HttpResponse:
    """Sign in at GET /sign-in/oidc/callback, to which the provider sends the browser."""
    return _guarded(OAuth2CallbackView, request)


def _guarded(view: Any, request: HttpRequest) -> HttpResponse:
    try:
        response: HttpResponse = view.adapter_view(OidcAdapter(request, OidcProvider.id))(request)
    except (OAuth2Error, OSError, *MALFORMED) as error:
        # `requests` raises subclasses of OSError.
        return error_page(request, sentence_of(error), reason_of(error), 502)
    return response
