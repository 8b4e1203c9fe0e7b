"""Who looks, and what that person may see: the responses of the projects they belong to, or of all of them."""

from __future__ import annotations

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, User
from django.db.models import QuerySet

from responses_app.models import ApiKey, Membership, Response

# The project of the first key, so that an operator has one before there is any other.
FIRST = "default"
NO_PROJECT = "You’re not a member of any project. Ask an admin to add you to one."


def projects(user: AbstractBaseUser | AnonymousUser) -> list[str]:
    """The names of the projects that a person sees, the first one first."""
    if not isinstance(user, User) or not user.is_active:
        return []
    if not user.is_superuser:
        return list(Membership.objects.filter(user=user).order_by("pk").values_list("project", flat=True))
    known = {*ApiKey.objects.values_list("project", flat=True), *Membership.objects.values_list("project", flat=True)}
    return [FIRST, *sorted(known - {FIRST})]


def is_member(user: AbstractBaseUser | AnonymousUser, project: str) -> bool:
    """Whether the person may act in that project."""
    if not isinstance(user, User) or not user.is_active:
        return False
    return user.is_superuser or Membership.objects.filter(user=user, project=project).exists()


def restricted_to(user: AbstractBaseUser | AnonymousUser) -> list[str] | None:
    """The names of the projects that a person's searches stay in; None for a person who sees all."""
    return None if isinstance(user, User) and user.is_active and user.is_superuser else projects(user)


def visible_responses(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Response]:
    """The responses that a person may look at. Those that are kept for the sake of a conversation alone are nobody's to see."""
    rows = Response.objects.exclude(stored=False, background=False)
    if isinstance(user, User) and user.is_active and user.is_superuser:
        return rows
    mine = projects(user)
    # Of one project the index is in the order of the list; `IN` would not be read in that order.
    return rows.filter(project=mine[0]) if len(mine) == 1 else rows.filter(project__in=mine)
