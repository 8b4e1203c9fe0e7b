"""Settings that all processes of a database need alike, because each acts by its own for all hosts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from django.conf import settings

# What a process deletes, what a response costs, and where deliveries may go.
NAMES: Final = (
    "RESPONSES_KEEP_DELTAS",
    "RESPONSES_KEEP_RESPONSES",
    "RESPONSES_KEEP_AUDIT",
    "RESPONSES_KEEP_FILES",
    "RESPONSES_KEEP_CONTAINERS",
    "RESPONSES_KEEP_WEBHOOK_DELIVERIES",
    "RESPONSES_DELETE_CONVERSATION_ITEMS",
    "RESPONSES_PRICES",
    "RESPONSES_CURRENCY",
    "RESPONSES_WEBHOOK_PRIVATE_HOSTS",
)


def shared_settings() -> dict[str, str]:
    """Return the value of each setting as text, the same in all processes with an equal value."""
    return {name: _text(getattr(settings, name)) for name in NAMES}


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(sorted((key, str(one)) for key, one in value.items()))
    return str(sorted(value) if isinstance(value, Set) else value)
