"""`|visible`: text of a model or a client with everything in it shown by name that would be invisible or turn lines around."""

from __future__ import annotations

from django import template

from responses_app.web.render.sanitize import visible as visible_

register = template.Library()


@register.filter
def visible(text: object) -> str:
    """The text, to be escaped as any other."""
    return visible_(str(text))
