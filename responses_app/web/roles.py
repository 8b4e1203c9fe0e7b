"""Roles that the pages need: one table of all pages, by the name of the URL, and one check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from responses_app.access.permissions import has_role
from responses_app.models import Role

# Role in the project of the row, to read a page (GET, HEAD) and to change something (POST).
USUAL: Final = (Role.VIEWER, Role.MEMBER)
# Pages that need other roles.
NEEDED: Final[Mapping[str, tuple[Role, Role]]] = {
    # Compares and exports. To cancel and to delete needs a member.
    "responses-selection": (Role.VIEWER, Role.VIEWER),
    **dict.fromkeys(
        (
            "chat",
            "chat-delete",
            "chat-options",
            "chat-secret",
            "chat-thread",
            "chat-threads",
            "container-delete",
            "file-delete",
            # The own keys. An admin of the project sees and changes all keys and their limits.
            "key",
            "key-revoke",
            "key-rotate",
            "response-delete",
            "response-rerun-column",
            "response-rerun-context",
            "vector-store-delete",
            "vector-store-file-remove",
        ),
        (Role.MEMBER, Role.MEMBER),
    ),
    **dict.fromkeys(("webhooks", "webhook", "webhook-resend"), (Role.VIEWER, Role.ADMIN)),
    **dict.fromkeys(("members", "member", "webhook-delete"), (Role.ADMIN, Role.ADMIN)),
}


def needed_role(request: HttpRequest) -> Role:
    """Return the role that the page of `request` needs."""
    match = request.resolver_match
    reading, changing = NEEDED.get((match and match.url_name) or "", USUAL)
    return reading if request.method in {"GET", "HEAD"} else changing


def check_role(request: HttpRequest, project: str, role: Role | None = None) -> None:
    """Check that the user has `role` in `project`, or the role that the page needs. Raises PermissionDenied."""
    needed = role or needed_role(request)
    if not has_role(request.user, project, needed):
        raise PermissionDenied(f"You need the role “{needed.label}” in this project. Ask an admin of the project.")
