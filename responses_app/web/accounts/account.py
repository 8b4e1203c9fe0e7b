"""A person's account: what is kept of it, and its erasure."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction

from responses_app.models import Membership
from responses_app.web.accounts import login_throttle


def of_account(user: User) -> Mapping[str, int]:
    """Count what is kept of a person, by kind."""
    return {
        "accounts": 1,
        "sessions": len(_sessions(user)),
        "memberships": Membership.objects.filter(user=user).count(),
        "entries of the admin's log": LogEntry.objects.filter(user=user).count(),
    }


def own_projects(user: User) -> list[str]:
    """List the projects of which nobody else is a member."""
    mine = Membership.objects.filter(user=user).values_list("project", flat=True)
    shared = Membership.objects.filter(project__in=mine).exclude(user=user).values_list("project", flat=True)
    return sorted(set(mine) - set(shared))


def erase_account(user: User) -> None:
    """Erase the account with its sessions, memberships, attempts at its password and entries of the admin's log."""
    with transaction.atomic():
        Session.objects.filter(pk__in=_sessions(user)).delete()
        login_throttle.forget_account(user.get_username())
        user.delete()


def _sessions(user: User) -> list[str]:
    """Find the sessions of a person, by reading all: Django keeps what is in them as one text."""
    return [one.pk for one in Session.objects.iterator() if one.get_decoded().get(SESSION_KEY) == str(user.pk)]
