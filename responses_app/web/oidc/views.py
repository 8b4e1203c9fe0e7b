"""Views of the sign-in by OpenID Connect: the redirect to the provider, and the way back."""

from __future__ import annotations

from typing import Any, Final

from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView, OAuth2LoginView
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from responses_app.web.oidc.adapter import INVALID, error_page
from responses_app.web.oidc.provider import OidcAdapter, OidcProvider
from responses_app.web.oidc.reasons import reason_of

AWAY: Final = "The sign-in provider cannot be reached. Please try again in a minute."
# What a malformed answer of the provider raises: missing fields, no JSON, a key of another kind.
MALFORMED: Final = (OAuth2Error, LookupError, TypeError, ValueError, AttributeError)


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
    except MALFORMED as error:
        return error_page(request, INVALID, reason_of(error), 502)
    except OSError as error:
        # `requests` raises subclasses of OSError.
        return error_page(request, AWAY, reason_of(error), 502)
    return response
