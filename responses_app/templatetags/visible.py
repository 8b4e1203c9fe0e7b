"""Filter `visible`: names invisible and bidirectional control characters in a text of a model or a client."""

from __future__ import annotations

from django import template

from responses_app.web.render import sanitize

register = template.Library()


@register.filter
def visible(text: object) -> str:
    """Name invisible characters. The template escapes the result like any text."""
    return sanitize.visible(str(text))
