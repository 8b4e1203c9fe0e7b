"""Settings that all processes of a database need alike, because each acts by its own for all hosts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from dataclasses import asdict
from typing import Any, Final

from django.conf import settings

# What a process deletes, what a response costs, where deliveries may go, and whether passwords sign in.
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
    "RESPONSES_LOCAL_SIGN_IN",
)


def shared_settings() -> dict[str, str]:
    """Return the value of each setting as text, the same in all processes with an equal value; of settings with secrets a hash."""
    sign_in = [asdict(settings.RESPONSES_OIDC), settings.SOCIALACCOUNT_PROVIDERS]
    return {
        **{name: _text(getattr(settings, name)) for name in NAMES},
        "RESPONSES_MCP_SERVERS": _hash(settings.RESPONSES_MCP_SERVERS),
        "RESPONSES_OIDC_…": _hash(sign_in),
    }


def _hash(value: Any) -> str:
    return hashlib.sha256(_text(value).encode()).hexdigest()[:16]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(sorted((key, _text(one)) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return str([_text(one) for one in value])
    return str(sorted(value) if isinstance(value, Set) else value)
