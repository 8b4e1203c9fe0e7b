"""Claims of the provider for tests."""

from __future__ import annotations

from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator

from tests.support.oidc import program


class Validator(OAuth2Validator):  # type: ignore[misc]
    """Validator with the name, an e-mail address and the groups of a person."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        """Return the claims of the person."""
        name = request.user.username
        return {"preferred_username": name, "email": "same@example.com", "groups": program.GROUPS.get(name, [])}
