"""Template tag for the roles of the user."""

from __future__ import annotations

from typing import Any

from django import template

from responses_app.access.permissions import projects
from responses_app.models import Role

register = template.Library()


@register.simple_tag(takes_context=True)
def administers_project(context: dict[str, Any]) -> bool:
    """Return whether the user is an admin of a project."""
    return bool(projects(context["request"].user, Role.ADMIN))
