"""The bearer secret of a signed-in person's browser: signed and not stored, for one project, for half a day."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, User
from django.core import signing

from responses_app.models import ApiKey
from responses_app.web.person import belongs

PREFIX = "sk-web-"
SALT = "browser key"
VALID_SECONDS = 12 * 3600


def secret(user: AbstractBaseUser, project: str) -> str:
    """A secret with which the browser of `user` can ask the public API as any client does. The caller has asked `person.belongs`."""
    return PREFIX + signing.dumps([user.pk, project], salt=SALT)


def find(text: str) -> ApiKey | None:
    """The key that such a secret stands for, which has no row; None for one that is old, or whose person may not any more."""
    if not text.startswith(PREFIX):
        return None
    try:
        pk, project = signing.loads(text[len(PREFIX) :], salt=SALT, max_age=VALID_SECONDS)
    except signing.BadSignature:
        return None
    user = User.objects.filter(pk=pk).first()
    if user is None or not belongs(user, project):
        return None
    return ApiKey(name=f"browser of {user.get_username()}", project=project, prefix=PREFIX)
