"""Tag `storage_problem`: why no new responses can be stored."""

from __future__ import annotations

from django import template

from responses_app.errors import STORAGE_FULL
from responses_app.store.storage_report.storage_state import storage_state

register = template.Library()


@register.simple_tag
def storage_problem() -> str:
    """Return a sentence while the disk is full, else an empty string."""
    return STORAGE_FULL if storage_state.is_full else ""
