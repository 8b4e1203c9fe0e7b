"""Settings for sign-in by OpenID Connect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.core.exceptions import ImproperlyConfigured

from responses_app.utils.json_setting import load_json, split_url

# Values of `models.Role`, which cannot be imported before the settings.
ROLES: Final = {"viewer": 1, "member": 2, "admin": 3}
LOCAL_HOSTS: Final = frozenset({"localhost", "127.0.0.1", "::1"})
METADATA_PATH: Final = "/.well-known/openid-configuration"
# Identifier of the provider for django-allauth.
PROVIDER: Final = "oidc"


@dataclass(frozen=True, slots=True)
class OidcSettings:
    """OpenID Connect provider. `roles` has for each group the role in each project; the group `*` has every person."""

    issuer: str
    name: str
    groups_claim: str
    roles: Mapping[str, Mapping[str, int]]
    superuser_groups: frozenset[str]
    session_age: timedelta | None

    def __post_init__(self) -> None:
        """Raise ImproperlyConfigured for a provider with an empty name or claim."""
        for variable, value in (("RESPONSES_OIDC_NAME", self.name), ("RESPONSES_OIDC_GROUPS_CLAIM", self.groups_claim)):
            if self.issuer and not value.strip():
                raise ImproperlyConfigured(f"{variable} is empty: set it, or unset it for the default")


def parse_roles(value: str) -> dict[str, dict[str, int]]:
    """Parse RESPONSES_OIDC_ROLES: `{"group": {"project": "viewer"}}`, or the path of such a file. Raises ImproperlyConfigured."""
    if not value:
        return {}
    groups = load_json("RESPONSES_OIDC_ROLES", value, "a JSON object or the path of a JSON file")
    if not isinstance(groups, dict):
        raise ImproperlyConfigured("RESPONSES_OIDC_ROLES must be a JSON object of groups")
    return {group: _projects(group, projects) for group, projects in groups.items()}


def _projects(group: str, projects: Any) -> dict[str, int]:
    place = f"RESPONSES_OIDC_ROLES: {group}"
    if not isinstance(projects, dict) or not projects:
        raise ImproperlyConfigured(f'{place} must be an object of projects and roles, such as {{"default": "member"}}')
    for project, role in projects.items():
        if not project or len(project) > 100:
            raise ImproperlyConfigured(f"{place}: the name of a project has 1 to 100 characters")
        if not isinstance(role, str) or role not in ROLES:
            raise ImproperlyConfigured(f"{place}.{project} must be one of {', '.join(ROLES)}")
    return {project: ROLES[role] for project, role in projects.items()}


def check_provider(issuer: str, client_id: str, client_secret: str, others: Mapping[str, object]) -> None:
    """Check that the provider is set as a whole or not at all. Raises ImproperlyConfigured."""
    if not issuer:
        if name := next((name for name, value in others.items() if value), None):
            raise ImproperlyConfigured(f"{name} needs RESPONSES_OIDC_ISSUER, the address of the OpenID Connect provider")
        return
    parts = split_url(issuer)
    if parts is None or not parts.hostname or parts.scheme not in {"https", "http"}:
        shown = issuer.rpartition("@")[2]
        raise ImproperlyConfigured(f"RESPONSES_OIDC_ISSUER must be an address such as https://id.example.com, not {shown!r}")
    if "@" in parts.netloc or parts.query or parts.fragment or any(map(str.isspace, issuer)):
        raise ImproperlyConfigured(
            "RESPONSES_OIDC_ISSUER must be the issuer alone, without a user name, a query, a fragment and white space"
        )
    if parts.path.rstrip("/").endswith(METADATA_PATH):
        raise ImproperlyConfigured(f"RESPONSES_OIDC_ISSUER must be the issuer alone, without {METADATA_PATH}")
    if parts.scheme == "http" and parts.hostname not in LOCAL_HOSTS:
        raise ImproperlyConfigured("RESPONSES_OIDC_ISSUER must begin with https:// unless the provider is on this machine")
    for name, value in (("RESPONSES_OIDC_CLIENT_ID", client_id), ("RESPONSES_OIDC_CLIENT_SECRET", client_secret)):
        if not value:
            raise ImproperlyConfigured(f"RESPONSES_OIDC_ISSUER needs {name}, which the provider gives for this client")


def provider_app(issuer: str, client_id: str, client_secret: str, scopes: list[str]) -> dict[str, Any]:
    """Return SOCIALACCOUNT_PROVIDERS of django-allauth; no provider without an issuer."""
    if not issuer:
        return {}
    app = {
        "provider_id": PROVIDER,
        "name": PROVIDER,
        "client_id": client_id,
        "secret": client_secret,
        "settings": {"server_url": issuer.rstrip("/"), "oauth_pkce_enabled": True, "scope": ["openid", *scopes]},
    }
    return {PROVIDER: {"APPS": [app]}}
