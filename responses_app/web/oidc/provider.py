"""OpenID Connect provider of the settings: state, nonce, PKCE and a verified ID token."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from allauth.account.utils import get_next_redirect_url
from allauth.socialaccount.internal import jwtkit
from allauth.socialaccount.providers.base.constants import AuthProcess
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

NONCE_BYTES: Final = 16


class OtherIssuerError(OAuth2Error):  # type: ignore[misc]
    """Error of metadata whose issuer differs from RESPONSES_OIDC_ISSUER."""


class OtherClientError(OAuth2Error):  # type: ignore[misc]
    """Error of an ID token that was issued to another client."""


def check_claims(claims: Mapping[str, Any], client_id: str) -> None:
    """Check what PyJWT does not: required times, and the client of the token (OpenID Connect Core 3.1.3.7). Raises OAuth2Error."""
    for name in ("exp", "iat"):
        if name not in claims:
            raise OAuth2Error(f"The ID token has no claim {name!r}")
    if claims.get("azp", client_id) != client_id:
        raise OtherClientError(f"The ID token was issued to the client {claims['azp']!r}")


class OidcAdapter(OpenIDConnectOAuth2Adapter):  # type: ignore[misc]
    """Exchange with the provider. Every difference from the standard raises OAuth2Error."""

    @property
    def openid_config(self) -> Any:
        """Return the metadata of the provider, whose issuer must be that of the settings."""
        metadata = super().openid_config
        if str(metadata.get("issuer", "")).rstrip("/") != settings.RESPONSES_OIDC.issuer.rstrip("/"):
            raise OtherIssuerError(f"The provider names the issuer {metadata.get('issuer')!r}")
        return metadata

    def complete_login(self, request: HttpRequest, app: Any, token: Any, **kwargs: Any) -> Any:
        """Return the sign-in with the claims of the ID token and of the user info for the same subject."""
        metadata = self.openid_config
        claims = jwtkit.verify_and_decode(
            credential=kwargs["response"]["id_token"],
            keys_url=metadata["jwks_uri"],
            issuer=metadata["issuer"],
            audience=app.client_id,
            lookup_kid=jwtkit.lookup_kid_jwk,
        )
        check_claims(claims, app.client_id)
        if "userinfo_endpoint" in metadata:
            user_info = self._fetch_user_info(token.token)
            if user_info.get("sub") != claims["sub"]:
                raise OAuth2Error("The user info belongs to another subject than the ID token")
            claims = {**user_info, **claims}
        login = self.get_provider().sociallogin_from_response(request, claims)
        login.claims = claims
        return login

    def get_callback_url(self, request: HttpRequest, app: Any) -> str:
        """Return the address to which the provider sends the browser back."""
        del app
        return request.build_absolute_uri(reverse("oidc-callback"))


class OidcProvider(OpenIDConnectProvider):  # type: ignore[misc]
    """Provider. Nothing but `next` is read from the query of the request that begins a sign-in."""

    id = "oidc"
    oauth2_adapter_class = OidcAdapter

    def get_redirect_from_request_kwargs(self, request: HttpRequest) -> dict[str, Any]:
        """Return the parameters of the sign-in, with a new nonce, which is also kept in the state."""
        nonce = secrets.token_urlsafe(NONCE_BYTES)
        values = {"process": AuthProcess.LOGIN, "next_url": get_next_redirect_url(request)}
        return {**values, "scope": self.get_scope(), "auth_params": {"nonce": nonce}, "nonce": nonce}

    def extract_uid(self, data: Any) -> str:
        """Return the identity of a person: a hash of issuer and subject, since a subject may be longer than the column."""
        return sha256(f"{data['iss']}\n{data['sub']}".encode()).hexdigest()

    def extract_extra_data(self, data: Any) -> dict[str, str]:
        """Return what is stored of the claims: issuer and subject."""
        return {name: str(data[name]) for name in ("iss", "sub")}

    def extract_common_fields(self, data: Any) -> dict[str, Any]:
        """Return no fields: `people` names the account."""
        del data
        return {}

    def extract_email_addresses(self, data: Any) -> list[Any]:
        """Return no addresses: no account is found by its e-mail address."""
        del data
        return []


provider_classes = [OidcProvider]
