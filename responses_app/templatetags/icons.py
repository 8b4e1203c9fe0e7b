"""Tag `icon`: an icon of the sprite static/web/icons.svg."""

from __future__ import annotations

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return the symbol `name` as decoration, hidden from screen readers: a button without text needs an `aria-label`."""
    return format_html('<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("web/icons.svg"), name)
