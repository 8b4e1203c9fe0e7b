"""Tags `serve`, `manage` and `program`: commands of a checkout, or of an installed package."""

from __future__ import annotations

from django import template

from responses_app.installation import data_dir

register = template.Library()


@register.simple_tag
def serve() -> str:
    """Return the command that starts a server."""
    return data_dir.SERVE


@register.simple_tag
def manage() -> str:
    """Return the name of the program with the commands of the project."""
    return data_dir.MANAGE


@register.simple_tag
def program() -> str:
    """Return the program with the commands of the project as a shell needs it."""
    return data_dir.PROGRAM
