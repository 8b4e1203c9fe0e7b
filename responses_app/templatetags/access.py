"""Template tags for the roles of the user. A link or button that the user may not use is not shown."""

from __future__ import annotations

from typing import Any

from django import template

from responses_app.access.permissions import ProjectNames, projects_with_role
from responses_app.models import Role

register = template.Library()


@register.simple_tag(takes_context=True)
def changeable_projects(context: dict[str, Any]) -> ProjectNames:
    """Return the projects in which the user is a member."""
    return projects_with_role(context["user"], Role.MEMBER)


@register.simple_tag(takes_context=True)
def administered_projects(context: dict[str, Any]) -> ProjectNames:
    """Return the projects in which the user is an admin."""
    return projects_with_role(context["user"], Role.ADMIN)
