"""How often a password may be tried: so often for an account from one address, from one address, and for one account."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Count, Min, Q
from django.utils import timezone

from responses_app.models import Attempt

WINDOW: Final = timedelta(minutes=15)
# For an account from one address; from an address, behind which there may be a whole office; for an account from anywhere.
MOST: Final = {"pair": 5, "address": 50, "account": 100}


def register(name: str, address: str) -> timedelta | None:
    """Count an attempt before its password is looked at, so that many at once are counted too; if it is one too many, how long to wait."""
    now, account = timezone.now(), _hash(name)
    Attempt.objects.filter(at__lt=now - WINDOW).delete()
    kinds = {"pair": Q(account=account, address=address), "address": Q(address=address), "account": Q(account=account)}
    mine = Attempt.objects.create(account=account, address=address, at=now)
    counts = {f"{kind}_count": Count("pk", filter=which) for kind, which in kinds.items()}
    firsts = {f"{kind}_since": Min("at", filter=which) for kind, which in kinds.items()}
    told = Attempt.objects.filter(kinds["address"] | kinds["account"], pk__lte=mine.pk).aggregate(**counts, **firsts)
    over: list[datetime] = [told[f"{kind}_since"] for kind, most in MOST.items() if told[f"{kind}_count"] > most]
    if not over:
        return None
    # What is refused is no attempt: whoever waits gets in when the first one is old enough.
    mine.delete()
    return max(max(over) + WINDOW - now, timedelta(seconds=1))


def clear(name: str, address: str) -> None:
    """The password was right."""
    Attempt.objects.filter(account=_hash(name), address=address).delete()


def forget_account(name: str) -> None:
    """Drop the attempts at the password of an account, whose person is to be forgotten."""
    Attempt.objects.filter(account=_hash(name)).delete()


def _hash(name: str) -> str:
    """Of a name as it was typed, which may be a password in the wrong field."""
    return hmac.new(settings.SECRET_KEY.encode(), name.strip().lower().encode(), hashlib.sha256).hexdigest()
