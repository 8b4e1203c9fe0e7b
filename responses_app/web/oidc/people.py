"""Accounts and roles of people who sign in by OpenID Connect."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from responses_app.models import Membership, Role
from responses_app.store import audit_log
from responses_app.utils.user_model import User
from responses_app.web.accounts.sign_in import OPERATOR

# Characters of Django's user names.
NOT_IN_NAMES: Final = re.compile(r"[^\w.@+-]+")
MAX_NAME_CHARS: Final = 140
# The group of every person.
EVERYBODY: Final = "*"


def new_account(claims: Mapping[str, Any]) -> User:
    """Create an account without a password, named by the claims; a number follows the name of another account."""
    texts = (claims.get(name) for name in ("preferred_username", "email", "name"))
    wish = next((text for text in texts if isinstance(text, str) and text.strip()), "user")
    # As the account stores it, so that the look-up finds an account with other forms of the same characters.
    wish = User.normalize_username(wish)
    name = NOT_IN_NAMES.sub("-", wish.strip()).strip("-")[:MAX_NAME_CHARS] or "user"
    number, free = 1, name
    # The operator's account belongs to `manage.py signin`.
    while free.lower() == OPERATOR or User.objects.filter(username__iexact=free).exists():
        number += 1
        free = f"{name}-{number}"
    return User.objects.create_user(free)


def groups_of(claims: Mapping[str, Any]) -> set[str]:
    """Return the groups in the claim of the settings; dots lead into objects, such as `realm_access.roles`."""
    path = settings.RESPONSES_OIDC.groups_claim
    value: Any = claims.get(path)
    if value is None:
        value = claims
        for part in path.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
    if isinstance(value, str):
        return {value}
    return {group for group in value if isinstance(group, str)} if isinstance(value, list) else set()


def apply_groups(request: HttpRequest, user: User, groups: set[str]) -> None:
    """Give `user` the roles of `groups`, and take the roles of earlier groups. Roles that people gave stay elsewhere."""
    role_by_project: dict[str, int] = {}
    for group in {EVERYBODY, *groups}:
        for project, role in settings.RESPONSES_OIDC.roles.get(group, {}).items():
            role_by_project[project] = max(role, role_by_project.get(project, 0))
    actor = audit_log.actor_of(request, user)
    with transaction.atomic():
        memberships = {row.project: row for row in Membership.objects.select_for_update().filter(user=user)}
        for project, role in role_by_project.items():
            row = memberships.get(project)
            if row is None or row.role != role or not row.by_provider:
                Membership.objects.update_or_create(user=user, project=project, defaults={"role": role, "by_provider": True})
                what = f"membership {user} in {project}: {Role(role).label}, by groups"
                audit_log.record(actor, "membership.create" if row is None else "membership.change", what, project)
        for project, row in memberships.items():
            if row.by_provider and project not in role_by_project:
                audit_log.record(actor, "membership.delete", f"membership {row}: {row.role_name}, by groups", project)
                row.delete()
        _apply_superuser(actor, user, groups)


def _apply_superuser(actor: audit_log.Actor, user: User, groups: set[str]) -> None:
    superuser_groups = settings.RESPONSES_OIDC.superuser_groups
    is_superuser = bool(superuser_groups & groups)
    if superuser_groups and user.is_superuser != is_superuser:
        user.is_superuser = user.is_staff = is_superuser
        user.save(update_fields=["is_superuser", "is_staff"])
        audit_log.record(actor, "account.change", f"account {user}: superuser {is_superuser}, by groups")
