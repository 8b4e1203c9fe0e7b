"""Body of a request as sent by the client, for the page of its response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson

# A longer body is stored with shortened texts, or if that is not enough with its numbers and texts alone.
MAX_BYTES = 64 * 1024
MAX_TEXT = 400
# Keys whose values are credentials.
CREDENTIALS = frozenset({"authorization_token", "authorization", "headers"})
HIDDEN = "…"
LEFT_OUT = re.compile(r'… \(\d+ (more characters|entries)\)"')


def dump_client_body(raw: Mapping[str, Any]) -> str:
    """Return the JSON of a body without the credentials of MCP servers; a long body is shortened."""
    body = hide_credentials(raw)
    text = orjson.dumps(body)
    if len(text) > MAX_BYTES:
        text = orjson.dumps(_shortened(body))
    if len(text) > MAX_BYTES:
        text = orjson.dumps({name: _size(value) for name, value in body.items()})
    return text.decode()


def hide_credentials(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a body without the credentials of MCP servers, which may also be in the queries of their URLs."""
    servers = raw.get("mcp_servers")
    return {**raw, "mcp_servers": _without_credentials(servers)} if servers else raw


def is_shortened(text: str) -> bool:
    """Return whether a stored body lacks a part of the request."""
    return LEFT_OUT.search(text) is not None


def _without_credentials(value: Any) -> Any:
    if isinstance(value, dict):
        fields = {name: HIDDEN if name in CREDENTIALS else _without_credentials(one) for name, one in value.items()}
        url, has_query, _ = str(fields.get("url", "")).partition("?")
        return {**fields, "url": f"{url}?{HIDDEN}"} if has_query else fields
    return [_without_credentials(one) for one in value] if isinstance(value, list) else value


def _shortened(value: Any) -> Any:
    """Return a value whose texts have MAX_TEXT characters at most, and a note of the missing characters."""
    if isinstance(value, dict):
        return {name: _shortened(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_shortened(one) for one in value]
    if not isinstance(value, str) or len(value) <= MAX_TEXT:
        return value
    return f"{value[:MAX_TEXT]}… ({len(value) - MAX_TEXT} more characters)"


def _size(value: Any) -> Any:
    """Return the number of entries of an object or an array; other values are unchanged, a text is shortened."""
    return f"… ({len(value)} entries)" if isinstance(value, (dict, list)) else _shortened(value)
