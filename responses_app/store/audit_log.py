"""Writing and retention of the audit log."""

from __future__ import annotations

import getpass
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.db import connection, transaction
from django.db.models import QuerySet
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from responses_app.models import AuditEntry
from responses_app.utils.user_model import User

# A repeated read of the same object by the same actor makes one entry in this time.
REPEAT: Final = timedelta(hours=1)
BATCH: Final = 1000

Kind = AuditEntry.ActorKind
Outcome = AuditEntry.AuditOutcome


@dataclass(frozen=True, slots=True)
class Actor:
    """Actor of an entry: an account, an API key, a command of the operator, or a visitor."""

    kind: AuditEntry.ActorKind
    pk: int | None = None
    name: str = ""
    address: str = ""


def actor_of(request: HttpRequest, user: Any = None) -> Actor:
    """Return the signed-in user of `request`, or `user`, as an actor; a visitor without one."""
    user, address = user or request.user, address_of(request)
    return (
        Actor(Kind.USER, user.pk, user.get_username(), address)
        if user.is_authenticated
        else Actor(Kind.VISITOR, address=address)
    )


def command() -> Actor:
    """Return the actor of a management command: the account of the operating system."""
    try:
        return Actor(Kind.COMMAND, name=getpass.getuser())
    except (KeyError, OSError):
        return Actor(Kind.COMMAND)


def address_of(request: HttpRequest) -> str:
    """Return the address of the client, behind trusted proxies the client's own."""
    return str(request.META.get("REMOTE_ADDR") or "")


def record(
    actor: Actor, action: str, object: str = "", project: str = "", outcome: AuditEntry.AuditOutcome = Outcome.SUCCESS
) -> None:
    """Append an entry."""
    AuditEntry.objects.create(
        at=timezone.now(),
        actor_kind=actor.kind,
        actor_id=actor.pk,
        actor=_stored(actor.name, 150),
        address=_stored(actor.address, 64),
        action=action,
        object=_stored(object, 200),
        project=_stored(project, 100),
        outcome=outcome,
    )


def record_on_page(request: HttpRequest, action: str, object: str, project: str) -> None:
    """Append an entry of the signed-in user."""
    record(actor_of(request), action, object, project)


def record_once(
    actor: Actor, action: str, object: str, project: str = "", outcome: AuditEntry.AuditOutcome = Outcome.SUCCESS
) -> None:
    """Append an entry, unless the same actor has one for the same action and object within `REPEAT`."""
    entries = AuditEntry.objects.filter(
        action=action,
        object=_stored(object, 200),
        at__gt=timezone.now() - REPEAT,
        outcome=outcome,
        actor_kind=actor.kind,
        actor_id=actor.pk,
        address=actor.address,
    )
    if entries.exists():
        return
    with transaction.atomic(), connection.cursor() as cursor:
        # A page loads its parts at the same time, from several processes.
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"audit log {action} {object}"])
        if not entries.using(connection.alias).exists():
            record(actor, action, object, project, outcome)


def overdue(before: datetime) -> QuerySet[AuditEntry]:
    """Select entries from before a time."""
    return AuditEntry.objects.filter(at__lt=before)


def prune(now: datetime, age: timedelta | None) -> Iterator[int]:
    """Delete entries older than `age`. Yield the size of each batch."""
    while age is not None:
        with transaction.atomic(), connection.cursor() as cursor:
            # The trigger of the table lets this transaction delete.
            cursor.execute("SET LOCAL responses_app.audit_retention = 'on'")
            keys = overdue(now - age).order_by("at").values_list("pk", flat=True)[:BATCH]
            deleted = AuditEntry.objects.filter(pk__in=list(keys)).delete()[0]
        if not deleted:
            return
        yield deleted


@receiver(user_logged_in)
def record_sign_in(request: HttpRequest, user: User, **_signal: Any) -> None:
    """Record a sign-in by any means."""
    record(actor_of(request, user), "sign-in", f"account {user.get_username()}")


@receiver(user_logged_out)
def record_sign_out(request: HttpRequest, user: User | None, **_signal: Any) -> None:
    """Record a sign-out."""
    if user is not None:
        record(actor_of(request, user), "sign-out", f"account {user.get_username()}")


@receiver(user_login_failed)
def record_failed_sign_in(credentials: Mapping[str, Any], request: HttpRequest | None = None, **_signal: Any) -> None:
    """Record a wrong password."""
    if request is not None:
        record(_visitor(request), "sign-in", named_account(credentials.get("username")), outcome=Outcome.FAILURE)


def record_throttled_sign_in(request: HttpRequest, name: str) -> None:
    """Record that too many attempts were made, once per `REPEAT`: a flood of attempts makes one entry."""
    record_once(_visitor(request), "sign-in", named_account(name), outcome=Outcome.REFUSED)


def named_account(name: Any) -> str:
    """Return the account that a visitor named; without such an account no name, because some people type a password there."""
    name = str(name or "").replace("\0", "")
    return f"account {name}" if User.objects.filter(username=name).exists() else "unknown account"


def _visitor(request: HttpRequest) -> Actor:
    return Actor(Kind.VISITOR, address=address_of(request))


def _stored(text: str, limit: int) -> str:
    """Return a text for a column: Postgres has no NUL and no lone surrogates."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:limit]
