"""Settings that all processes of a database need alike, because each acts by its own for all hosts."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import asdict
from typing import Any, Final

from django.conf import settings
from django.utils.crypto import salted_hmac

from responses_app.installation.keyring import secret_key_ids

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
# Beginning of the hashes, before the id of the key.
KEYED: Final = "hmac:"
# Label of the MCP server that RESPONSES_DEMO_TOOLS adds. Its program is in the checkout of each host.
DEMO_LABEL: Final = "demo"


def shared_settings() -> dict[str, str]:
    """Return the value of each setting as text, the same in all processes with an equal value.

    Settings with secrets are an HMAC with SECRET_KEY behind the id of the key, as a plain hash in a copy of the database would
    confirm guesses.
    """
    sign_in = [asdict(settings.RESPONSES_OIDC), settings.SOCIALACCOUNT_PROVIDERS]
    return {
        **{name: _text(getattr(settings, name)) for name in NAMES},
        "RESPONSES_MCP_SERVERS": _hash(_mcp_servers()),
        "RESPONSES_OIDC_…": _hash(sign_in),
    }


def is_other(mine: str, theirs: str) -> bool:
    """Return whether two values of a setting differ. The secrets of processes with another SECRET_KEY cannot be compared."""
    is_hashed = mine.startswith(KEYED)
    return mine != theirs and (not is_hashed or mine.rpartition(":")[0] == theirs.rpartition(":")[0])


def _mcp_servers() -> Mapping[str, Any]:
    """Return the MCP servers of the operator, without the example: a command beside a `bin/serve --demo-tools` does not have it."""
    servers: Mapping[str, Any] = settings.RESPONSES_MCP_SERVERS
    return {label: server for label, server in servers.items() if not settings.RESPONSES_DEMO_TOOLS or label != DEMO_LABEL}


def _hash(value: Any) -> str:
    digest = salted_hmac("verbatim shared settings", _text(value), algorithm="sha256").hexdigest()
    return f"{KEYED}{secret_key_ids()[0]}:{digest}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(sorted((key, _text(one)) for key, one in value.items()))
    if isinstance(value, list | tuple):
        return str([_text(one) for one in value])
    return str(sorted(value) if isinstance(value, Set) else value)
