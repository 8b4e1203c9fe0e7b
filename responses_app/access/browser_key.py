"""Browser keys: signed, not stored bearer secrets of signed-in users, for a single project and at most twelve hours.

A browser key ends with its session: the user signs out, changes the password or becomes inactive.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.backends.db import SessionStore
from django.core import signing
from django.utils.crypto import constant_time_compare

from responses_app.access.permissions import has_role
from responses_app.installation.keyring import decrypt_bytes, encryption_keys
from responses_app.models import ApiKey, Role
from responses_app.utils.user_model import User

PREFIX = "sk-web-"
SALT = "browser key"
# A session key authenticates like its cookie, so the secret holds an encrypted session key.
PURPOSE = b"verbatim session of a browser key"
VALID_SECONDS = 12 * 3600


def secret(user: User, session: SessionBase, project: str) -> str:
    """Create a browser key of `user`. The caller has checked the role."""
    assert session.session_key is not None  # noqa: S101 - a signed-in user has a session
    key = next(encryption_keys(PURPOSE))
    sealed = key.cipher.encrypt(session.session_key.encode(), [str(user.pk).encode()])
    return PREFIX + signing.dumps([user.pk, project, urlsafe_b64encode(sealed).decode()], salt=SALT)


def find_key(text: str) -> ApiKey | None:
    """Return the key of a browser secret, without a database row; None if the session or the user no longer exists."""
    if not text.startswith(PREFIX):
        return None
    try:
        pk, project, sealed = signing.loads(text[len(PREFIX) :], salt=SALT, max_age=VALID_SECONDS)
        session_key = decrypt_bytes(PURPOSE, urlsafe_b64decode(sealed), [str(pk).encode()])
    except (signing.BadSignature, ValueError):
        return None
    user = User.objects.filter(pk=pk).first()
    if (
        user is None
        or session_key is None
        or not _is_signed_in(user, session_key.decode())
        or not has_role(user, project, Role.MEMBER)
    ):
        return None
    key = ApiKey(name=f"browser of {user.get_username()}", project=project, prefix=PREFIX)
    key.user_pk = user.pk
    return key


def _is_signed_in(user: User, session_key: str) -> bool:
    """Return True if the session exists and matches the user and the password, as Django checks for each page."""
    session = SessionStore(session_key).load()
    hashed = session.get(HASH_SESSION_KEY, "")
    valid = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
    return session.get(SESSION_KEY) == str(user.pk) and any(constant_time_compare(hashed, one) for one in valid)
