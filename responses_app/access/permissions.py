"""Permissions of signed-in users: the projects and responses that a user may see."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db.models import QuerySet

from responses_app.models import ApiKey, Membership, Response, Role
from responses_app.utils.user_model import User

# Project of the first key, which exists before any other.
FIRST = "default"
NO_PROJECT = "You’re not a member of any project. Ask an admin to add you to one."


@dataclass(frozen=True, slots=True)
class ProjectNames:
    """Names of projects; with `every` it contains each name."""

    names: frozenset[str] = frozenset()
    every: bool = False

    def __contains__(self, name: object) -> bool:
        """Return whether the project `name` is one of these."""
        return self.every or name in self.names

    def __bool__(self) -> bool:
        """Return whether there is a project."""
        return self.every or bool(self.names)


def projects(user: AbstractBaseUser | AnonymousUser, role: Role = Role.VIEWER) -> list[str]:
    """Return the names of the projects in which a user has at least `role`, the default project first."""
    if not isinstance(user, User) or not user.is_active:
        return []
    if not user.is_superuser:
        return list(Membership.objects.filter(user=user, role__gte=role).order_by("pk").values_list("project", flat=True))
    return known_projects()


def projects_with_role(user: AbstractBaseUser | AnonymousUser, role: Role) -> ProjectNames:
    """Return the projects in which a user has at least `role`: every project for a superuser, without a query."""
    if isinstance(user, User) and user.is_active and user.is_superuser:
        return ProjectNames(every=True)
    return ProjectNames(frozenset(projects(user, role)))


def known_projects() -> list[str]:
    """Return the names of all projects with a key or a member, the default project first."""
    known = {*ApiKey.objects.values_list("project", flat=True), *Membership.objects.values_list("project", flat=True)}
    return [FIRST, *sorted(known - {FIRST})]


def has_role(user: AbstractBaseUser | AnonymousUser, project: str, role: Role) -> bool:
    """Return True if the user has at least `role` in `project`."""
    if not isinstance(user, User) or not user.is_active:
        return False
    return user.is_superuser or Membership.objects.filter(user=user, project=project, role__gte=role).exists()


def restricted_to(user: AbstractBaseUser | AnonymousUser) -> list[str] | None:
    """Return the projects to which searches of a user are restricted; None for a superuser."""
    return None if isinstance(user, User) and user.is_active and user.is_superuser else projects(user)


def visible_responses(user: AbstractBaseUser | AnonymousUser) -> QuerySet[Response]:
    """Return the responses that a user may see. Responses stored only for a conversation are visible to no user."""
    rows = Response.objects.exclude(stored=False, background=False)
    if isinstance(user, User) and user.is_active and user.is_superuser:
        return rows
    mine = projects(user)
    # An index serves one project in list order; `IN` with several projects would not use that order.
    return rows.filter(project=mine[0]) if len(mine) == 1 else rows.filter(project__in=mine)
