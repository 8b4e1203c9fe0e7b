"""`|visible`: text of a model or a client with everything in it shown by name that would be invisible or turn lines around."""

from __future__ import annotations

from django import template

from responses_app.web.plain import plain

register = template.Library()


@register.filter
def visible(text: object) -> str:
    """The text, to be escaped as any other."""
    return plain(str(text))
