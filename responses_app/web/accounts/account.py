"""Stored data of a user account: counts and erasure."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import transaction

from responses_app.models import Membership
from responses_app.utils.user_model import User
from responses_app.web.accounts import login_throttle


def count_records(user: User) -> Mapping[str, int]:
    """Count the stored records of a user, by kind."""
    return {
        "accounts": 1,
        "sessions": len(_sessions(user)),
        "memberships": Membership.objects.filter(user=user).count(),
        "entries of the admin's log": LogEntry.objects.filter(user=user).count(),
    }


def own_projects(user: User) -> list[str]:
    """List the projects with `user` as the only member."""
    own_memberships = Membership.objects.filter(user=user).values_list("project", flat=True)
    shared = Membership.objects.filter(project__in=own_memberships).exclude(user=user).values_list("project", flat=True)
    return sorted(set(own_memberships) - set(shared))


def erase_account(user: User) -> None:
    """Erase the account with all sessions, memberships, sign-in attempts and entries of the admin's log."""
    with transaction.atomic():
        Session.objects.filter(pk__in=_sessions(user)).delete()
        login_throttle.forget_account(user.get_username())
        user.delete()


def _sessions(user: User) -> list[str]:
    """Find the sessions of a user by decoding all sessions: Django stores the user id only inside the encoded data."""
    return [row.pk for row in Session.objects.iterator() if row.get_decoded().get(SESSION_KEY) == str(user.pk)]
