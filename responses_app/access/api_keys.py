"""Authentication by bearer key, with a cache of recent keys."""

from __future__ import annotations

import asyncio
import secrets
import time
from datetime import datetime, timedelta
from hashlib import blake2b

from asgiref.sync import sync_to_async
from django.contrib.auth.signals import user_logged_out
from django.db.models import Q
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from responses_app.access import browser_key
from responses_app.errors import Unauthorized
from responses_app.installation.data_dir import MANAGE
from responses_app.models import ApiKey, Membership, Project
from responses_app.store.db import release_connection
from responses_app.utils.user_model import User

# Lifetime of a cached key: a revoked key may work for so long.
CACHE_S = 30.0
# Lifetime of a cached browser key: after signing out, the key may work for so long in other processes.
BROWSER_CACHE_S = 5.0
MAX_CACHED_KEYS = 10_000
USED_EVERY = timedelta(minutes=1)
_CACHE_KEY = secrets.token_bytes(32)
_seen: dict[bytes, tuple[float, ApiKey]] = {}
_pending: dict[bytes, asyncio.Future[ApiKey | None]] = {}


async def authenticate(request: HttpRequest) -> ApiKey:
    """Return the key of `request`. Raises Unauthorized."""
    return await authenticate_header(bearer(request.META.get("HTTP_AUTHORIZATION", ""), request.META.get("HTTP_X_API_KEY", "")))


async def is_accepted(request: HttpRequest) -> bool:
    """Return whether the key of `request` is still accepted."""
    try:
        await authenticate(request)
    except Unauthorized:
        return False
    return True


def bearer(authorization: str, x_api_key: str) -> str:
    """Return the `Authorization` header, or one with the key of `x-api-key`, which clients of Anthropic's API send."""
    return f"Bearer {x_api_key}" if x_api_key and not authorization else authorization


async def authenticate_header(header: str) -> ApiKey:
    """Return the key in an `Authorization` header. Raises Unauthorized."""
    cached = cached_key(header)
    if cached is not None:
        return cached
    secret, now = _secret(header), time.monotonic()
    digest = _digest(secret)
    key = await _look_up(digest, secret)
    if key is None:
        raise Unauthorized(f"Incorrect API key provided: {_mask(secret)}. Make one with '{MANAGE} createkey'.")
    lifetime = BROWSER_CACHE_S if key.pk is None else CACHE_S
    if (end := key.valid_until) is not None:
        left_s = (end - timezone.now()).total_seconds()
        if left_s <= 0:
            raise _expired(key, end)
        lifetime = min(lifetime, left_s)
    if len(_seen) >= MAX_CACHED_KEYS:
        _seen.clear()
    _seen[digest] = (now + lifetime, key)
    return key


def _expired(key: ApiKey, end: datetime) -> Unauthorized:
    when = f"{end:%Y-%m-%d %H:%M:%S} UTC"
    if key.has_old_secret:
        return Unauthorized(
            f"This secret of the API key '{key.name}' was replaced, and is refused since {when}. Use the new one."
        )
    return Unauthorized(f"The API key '{key.name}' expired at {when}. Create a new key, or set a later expiry date.")


def cached_key(header: str) -> ApiKey | None:
    """Return the key in an `Authorization` header from the cache, or None. Raises Unauthorized for a header without a key."""
    cached = _seen.get(_digest(_secret(header)))
    return cached[1] if cached is not None and cached[0] > time.monotonic() else None


def account(key: ApiKey) -> str:
    """Return the account name under which the transport counts this key's bytes; browser keys have no row."""
    return str(key.pk) if key.pk is not None else f"{key.name} in {key.project}"


def _secret(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise Unauthorized("You didn't provide an API key. Send it as 'Authorization: Bearer YOUR_KEY'.")
    return secret


def _digest(secret: str) -> bytes:
    """Hash a key for the caches of this process, several times per request: ten times as fast as the digest in the database."""
    return blake2b(secret.encode(), key=_CACHE_KEY, digest_size=32).digest()


async def _look_up(digest: bytes, secret: str) -> ApiKey | None:
    """Look up a key with a single query, also for many simultaneous requests."""
    pending = _pending.get(digest)
    if pending is None:
        pending = _pending[digest] = asyncio.ensure_future(sync_to_async(_find)(secret))
        pending.add_done_callback(lambda _: _pending.pop(digest, None))
    return await asyncio.shield(pending)


def _find(secret: str) -> ApiKey | None:
    """Find a key in the database, or the browser key of a signed-in user."""
    try:
        key = browser_key.find_key(secret) or ApiKey.find(secret)
        if key is not None:
            key.project_limits = Project.objects.filter(name=key.project).first()
            if key.pk is not None:
                _record_use(key)
        return key
    finally:
        # A look-up before the body belongs to no request, so no request's end returns the connection.
        release_connection()


def _record_use(key: ApiKey) -> None:
    """Record the time of use, at most once a minute."""
    now = timezone.now()
    old = Q(last_used_at=None) | Q(last_used_at__lt=now - USED_EVERY)
    ApiKey.objects.filter(old, pk=key.pk).update(last_used_at=now)


def clear_cache() -> None:
    """Clear the cache of keys."""
    _seen.clear()


@receiver(user_logged_out)
@receiver((post_save, post_delete), sender=User)
@receiver((post_save, post_delete), sender=Membership)
def forget_browsers(**_signal: object) -> None:
    """Drop cached browser keys after a sign-out or a change of an account or a membership."""
    for digest, (_, key) in list(_seen.items()):
        if key.pk is None:
            _seen.pop(digest, None)


def _mask(secret: str) -> str:
    return f"{secret[:4]}…{secret[-2:]}" if len(secret) > 12 else "…"
