"""Who is asking: the bearer key of a request, looked up once and remembered for a short while."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_out
from django.db.models import Q
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from responses_app.access import browser_key
from responses_app.errors import Unauthorized
from responses_app.models import ApiKey, Membership
from responses_app.store.db import give_back

# A revoked key may work for this long in a process that has just seen it.
REMEMBER_SECONDS = 30.0
# That of a browser may work for this long in a process other than the one in which its person has signed out.
REMEMBER_BROWSER_SECONDS = 5.0
REMEMBER_KEYS = 10_000
USED_EVERY = timedelta(minutes=1)
_seen: dict[str, tuple[float, ApiKey]] = {}
_pending: dict[str, asyncio.Future[ApiKey | None]] = {}


async def authenticate(request: HttpRequest) -> ApiKey:
    """The key of `request`. Raises Unauthorized (checklist 3)."""
    return await authenticate_header(request.headers.get("Authorization", ""))


async def authenticate_header(header: str) -> ApiKey:
    """The key in an `Authorization` header. Raises Unauthorized."""
    known = remembered(header)
    if known is not None:
        return known
    secret, now = _secret(header), time.monotonic()
    digest = ApiKey.hash(secret)
    key = await _look_up(digest, secret)
    if key is None:
        raise Unauthorized(f"Incorrect API key provided: {_mask(secret)}. Make one with 'manage.py createkey'.")
    if len(_seen) >= REMEMBER_KEYS:
        _seen.clear()
    _seen[digest] = (now + (REMEMBER_BROWSER_SECONDS if key.pk is None else REMEMBER_SECONDS), key)
    return key


def remembered(header: str) -> ApiKey | None:
    """Return the key in an `Authorization` header if it was looked up a moment ago. Raises Unauthorized if there is none in it."""
    known = _seen.get(ApiKey.hash(_secret(header)))
    return known[1] if known is not None and known[0] > time.monotonic() else None


def account(key: ApiKey) -> str:
    """Return a name for what the holder of this key has under way; the key of a browser has no row."""
    return str(key.pk) if key.pk is not None else f"{key.name} in {key.project}"


def _secret(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    secret = secret.strip()
    if scheme.lower() != "bearer" or not secret:
        raise Unauthorized("You didn't provide an API key. Send it as 'Authorization: Bearer YOUR_KEY'.")
    return secret


async def _look_up(digest: str, secret: str) -> ApiKey | None:
    """One query, also when many requests come at once with a key that is not remembered."""
    pending = _pending.get(digest)
    if pending is None:
        pending = _pending[digest] = asyncio.ensure_future(sync_to_async(_find)(secret))
        pending.add_done_callback(lambda _: _pending.pop(digest, None))
    return await asyncio.shield(pending)


def _find(secret: str) -> ApiKey | None:
    """A key of the table, or that of the browser of somebody who has signed in."""
    try:
        key = browser_key.find_key(secret) or ApiKey.find(secret)
        if key is not None and key.pk is not None:
            _used(key)
        return key
    finally:
        # A look-up before the body is in no request, whose end would give the connection back.
        give_back()


def _used(key: ApiKey) -> None:
    """Remember when, to the minute: keys are looked up again every half minute, and each time is not worth a write."""
    now = timezone.now()
    old = Q(last_used_at=None) | Q(last_used_at__lt=now - USED_EVERY)
    ApiKey.objects.filter(old, pk=key.pk).update(last_used_at=now)


def clear_cache() -> None:
    """Drop what is remembered."""
    _seen.clear()


@receiver(user_logged_out)
@receiver((post_save, post_delete), sender=User)
@receiver((post_save, post_delete), sender=Membership)
def forget_browsers(**_signal: object) -> None:
    """Drop what is remembered of browsers: a session has ended, or an account or a membership has changed."""
    for digest, (_, key) in list(_seen.items()):
        if key.pk is None:
            _seen.pop(digest, None)


def _mask(secret: str) -> str:
    return f"{secret[:4]}…{secret[-2:]}" if len(secret) > 12 else "…"
