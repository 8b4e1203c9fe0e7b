"""New webhook endpoints, and new secrets of endpoints. The secret in clear is returned once and stored encrypted."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import uuid_utils
from django.utils import timezone

from responses_app.models import WebhookEndpoint
from responses_app.webhooks.signatures import encrypt_again, encrypt_secret, new_secret, secret_hint

# Time that the old secret stays valid if a rotation keeps it.
OLD_SECRET_VALID: Final = timedelta(hours=24)


def new_endpoint(project: str, **columns: Any) -> tuple[WebhookEndpoint, str]:
    """Make an endpoint, not inserted yet, and the secret. `columns` are `name`, `url` and `event_types`."""
    uid, secret, now = f"we_{uuid_utils.uuid7().hex}", new_secret(), timezone.now()
    row = WebhookEndpoint(uid=uid, project=project, created_at=now, updated_at=now, **columns)
    row.secret, row.secret_hint = encrypt_secret(uid, secret), secret_hint(secret)
    return row, secret


def rotate(row: WebhookEndpoint, *, keep_old: bool) -> str:
    """Give an endpoint a new secret and return the secret. With `keep_old`, deliveries are signed with both for 24 hours."""
    now, secret = timezone.now(), new_secret()
    row.old_secret, row.old_secret_until = (row.secret, now + OLD_SECRET_VALID) if keep_old else (None, None)
    row.secret, row.secret_hint, row.updated_at = encrypt_secret(row.uid, secret), secret_hint(secret), now
    row.save(update_fields=["secret", "secret_hint", "old_secret", "old_secret_until", "updated_at"])
    return secret


def encrypt_all_again() -> None:
    """Encrypt the secrets of all endpoints with SECRET_KEY, so that SECRET_KEY_FALLBACKS are not needed for these any more."""
    for row in WebhookEndpoint.objects.only("uid", "secret", "old_secret").iterator():
        changes = {name: encrypt_again(row.uid, getattr(row, name)) for name in ("secret", "old_secret")}
        # A rotation may have changed the row meanwhile.
        WebhookEndpoint.objects.filter(pk=row.pk, secret=row.secret).exclude(**changes).update(**changes)
