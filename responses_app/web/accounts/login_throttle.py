"""Login throttle: limits password attempts per account and address, per address, and per account."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from responses_app.models import LoginAttempt

WINDOW: Final = timedelta(minutes=15)
# Attempts per `WINDOW` for an account from one address, from an address (perhaps of a whole office), and for an account.
MAX_ATTEMPTS: Final = {"pair": 5, "address": 50, "account": 100}


def register(name: str, address: str) -> timedelta | None:
    """Record an attempt. Return the time to wait if a limit is exceeded, else None.

    Call before the password check, so that concurrent attempts are counted too.
    """
    now, account = timezone.now(), _hash(name)
    # An attempt of the future is one from before the clock was set back. Clocks of hosts may differ by less than `WINDOW`.
    LoginAttempt.objects.exclude(at__range=(now - WINDOW, now + WINDOW)).delete()
    kinds = {"pair": Q(account=account, address=address), "address": Q(address=address), "account": Q(account=account)}
    attempt = LoginAttempt.objects.create(account=account, address=address, at=now)
    counts = {f"{kind}_count": Count("pk", filter=which) for kind, which in kinds.items()}
    firsts = {f"{kind}_since": Min("at", filter=which) for kind, which in kinds.items()}
    totals = LoginAttempt.objects.filter(kinds["address"] | kinds["account"], pk__lte=attempt.pk).aggregate(**counts, **firsts)
    over: list[datetime] = [totals[f"{kind}_since"] for kind, limit in MAX_ATTEMPTS.items() if totals[f"{kind}_count"] > limit]
    if not over:
        return None
    # A refused attempt does not count, so that the wait ends when the oldest counted attempt leaves `WINDOW`.
    attempt.delete()
    return max(max(over) + WINDOW - now, timedelta(seconds=1))


def clear(name: str, address: str) -> None:
    """Delete the attempts for an account from `address`, after a correct password."""
    LoginAttempt.objects.filter(account=_hash(name), address=address).delete()


def forget_account(name: str) -> None:
    """Delete all attempts for an account."""
    LoginAttempt.objects.filter(account=_hash(name)).delete()


def _hash(name: str) -> str:
    """Hash the typed name, because a user may type a password into the name field."""
    return hmac.new(settings.SECRET_KEY.encode(), name.strip().lower().encode(), hashlib.sha256).hexdigest()
