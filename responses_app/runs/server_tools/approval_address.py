"""Binding of approvals to servers: the id of an approval request ends with a keyed hash of the server's address."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from typing import Any

import orjson

from responses_app.installation.keyring import secret_keys

Json = Mapping[str, Any]
HASH_LENGTH = 24
# Ids of clients and of earlier versions have no hash.
ENDING = re.compile(rf"mcpr_[0-9a-f]{{48}}-([0-9a-f]{{{HASH_LENGTH}}})")


def id_ending(project: str, tool: Json) -> str:
    """Return the ending of ids of approval requests for the server of an `mcp` tool."""
    return f"-{_hash(secret_keys()[0], project, tool)}"


def is_for_server(request_id: str, project: str, tool: Json) -> bool:
    """Return whether an approval of the request may be used for the server of `tool`. Ids without a hash may be."""
    match = ENDING.fullmatch(request_id)
    return match is None or any(hmac.compare_digest(match[1], _hash(key, project, tool)) for key in secret_keys())


def _hash(key: str, project: str, tool: Json) -> str:
    """Return a hash of the address in the request, or of the name by which the request means a server of the operator."""
    url, connector = tool.get("server_url"), tool.get("connector_id")
    address = ["url", url] if url is not None else ["connector", connector] if connector else ["label", tool["server_label"]]
    message = b"approval address" + orjson.dumps([project, address])
    return hmac.new(key.encode(), message, hashlib.sha256).hexdigest()[:HASH_LENGTH]
